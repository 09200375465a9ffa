// viewer/index/lane_names.h
//
// The label of a lane (the memory of one heap on one device), and its order among lanes.
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

// More than any machine has; if a file claims more, some are left out.
inline constexpr size_t kMaxLanes = 256;

// `device`: analysis::kHostDevice for host memory. `heap`: index into Trace::heaps, with the name
// `heap_name`.
struct LanePlace {
  int32_t device;
  uint32_t heap;
  std::string_view heap_name;
};

// Returns whether the lane consists of blocks that an allocator has carved out of driver memory.
bool HasBlocks(const LanePlace& lane);

// Returns a label such as "GPU 0 · PyTorch blocks".
std::string LabelOf(const LanePlace& lane);

// Returns the device whose lanes are listed first: the one with the highest peak. `peaks`: by
// device.
int32_t MainDevice(const std::map<int32_t, uint64_t>& peaks);

// Returns a sort key: the main device first; on each device PyTorch's blocks, other blocks, driver
// memory; host memory last.
std::tuple<bool, bool, int32_t, int, uint32_t> RankOf(const LanePlace& lane, int32_t main);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_LANE_NAMES_H_
