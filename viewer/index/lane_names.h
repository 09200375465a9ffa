// viewer/index/lane_names.h
//
// How a lane (the memory of one heap on one device) is called, and where it stands among others.
//
// Thread safety: free functions, from any thread.

#ifndef GMT_VIEWER_INDEX_LANE_NAMES_H_
#define GMT_VIEWER_INDEX_LANE_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace gmt::viewer {

// No machine has as many; of a file that claims more some are left out.
inline constexpr size_t kMaxLanes = 256;

// `device`: analysis::kHostDevice for host memory. `heap`: index of Trace::heaps, where it is called
// `heap_name`.
struct LanePlace {
  int32_t device;
  uint32_t heap;
  std::string_view heap_name;
};

// Whether it is of blocks that an allocator has cut from memory of the driver's.
bool HasBlocks(const LanePlace& lane);

// "GPU 0 · PyTorch blocks".
std::string LabelOf(const LanePlace& lane);

// The device whose lanes stand first: that which held the most at its peak, by device.
int32_t MainDevice(const std::map<int32_t, uint64_t>& peaks);

// Smaller stands first: the main device, and on each device PyTorch's blocks,
// other blocks, the driver's memory; host memory last.
std::tuple<bool, bool, int32_t, int, uint32_t> RankOf(const LanePlace& lane, int32_t main);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_LANE_NAMES_H_
