#include "viewer/index/lane_names.h"

#include "absl/strings/str_cat.h"
#include "analysis/trace/trace.h"

namespace gmt::viewer {

using analysis::kDriverHeap;
using analysis::kHostDevice;
using analysis::kHostHeap;

bool HasBlocks(const LanePlace& lane) { return lane.heap > kHostHeap && lane.heap_name != "nvtx"; }

std::string LabelOf(const LanePlace& lane) {
  if (lane.heap == kHostHeap) return "Host memory (pinned)";
  const std::string device =
      lane.device == kHostDevice ? "Host" : absl::StrCat("GPU ", lane.device);
  if (lane.heap == kDriverHeap) return absl::StrCat(device, " · driver memory");
  if (lane.heap_name == "pytorch") return absl::StrCat(device, " · PyTorch blocks");
  if (lane.heap_name == "nvtx") return absl::StrCat(device, " · NVTX regions");
  return absl::StrCat(device, " · ", std::string(lane.heap_name), " blocks");
}

int32_t MainDevice(const std::map<int32_t, uint64_t>& peaks) {
  int32_t main = kHostDevice;
  for (const auto& [device, peak] : peaks) {
    if (device != kHostDevice && (main == kHostDevice || peak > peaks.at(main))) main = device;
  }
  return main;
}

std::tuple<bool, bool, int32_t, int, uint32_t> RankOf(const LanePlace& lane, int32_t main) {
  const int heap = lane.heap_name == "pytorch" ? 0
                   : HasBlocks(lane)           ? 1
                   : lane.heap == kDriverHeap  ? 2
                                               : 3;
  return {lane.device == kHostDevice, lane.device != main, lane.device, heap, lane.heap};
}

}  // namespace gmt::viewer
