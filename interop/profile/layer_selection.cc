#include "interop/profile/layer_selection.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmt::interop {

using analysis::kHostDevice;
using analysis::RowId;

absl::StatusOr<LayerSelection> LayerSelection::Make(const analysis::Trace& trace,
                                                    std::optional<int32_t> device,
                                                    const std::string& heap) {
  std::optional<uint16_t> number;
  if (!heap.empty()) {
    const auto found = std::find(trace.heaps.begin(), trace.heaps.end(), heap);
    if (found == trace.heaps.end()) {
      return absl::NotFoundError(absl::StrCat(
          "no heap '", heap, "' was recorded; recorded heaps: ", absl::StrJoin(trace.heaps, ", ")));
    }
    number = static_cast<uint16_t>(found - trace.heaps.begin());
  }
  LayerSelection selection(trace, number);
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    selection.devices_.insert(trace.rows.device[row]);
    if (trace.rows.IsBlock(row)) selection.with_blocks_.insert(trace.rows.device[row]);
  }
  if (selection.devices_.size() > 1 && !number) selection.devices_.erase(kHostDevice);
  if (device) std::erase_if(selection.devices_, [&](int32_t d) { return d != *device; });
  if (device && selection.devices_.empty()) {
    return absl::NotFoundError(
        absl::StrCat("device ", *device, " holds nothing in this recording"));
  }
  return selection;
}

bool LayerSelection::Selects(RowId row) const {
  const int32_t device = trace_->rows.device[row];
  if (!devices_.contains(device)) return false;
  if (heap_) return trace_->rows.heap[row] == *heap_;
  return with_blocks_.contains(device) ? trace_->rows.IsBlock(row)
                                       : trace_->rows.heap[row] <= analysis::kHostHeap;
}

std::string DeviceLabel(int32_t device) {
  return device == kHostDevice ? "host" : absl::StrCat("cuda:", device);
}

}  // namespace gmt::interop
