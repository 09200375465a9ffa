// interop/profile/layer_selection.h
//
// LayerSelection: the rows of a recording whose bytes may be added up. Heaps are layers
// (docs/architecture.md, "Words"); for each device only one of them is selected: the blocks of a
// framework's allocator if it has any, otherwise driver memory. A heap that is given by name is
// selected instead, on all devices. Host memory is selected only by name, or if there is no device.
//
// Thread safety: const methods from any thread. Cost of the construction: a walk over the rows.

#ifndef GMT_INTEROP_PROFILE_LAYER_SELECTION_H_
#define GMT_INTEROP_PROFILE_LAYER_SELECTION_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "analysis/trace/trace.h"

namespace gmt::interop {

class LayerSelection {
 public:
  // `heap`: empty for the layers above. Returns NOT_FOUND if the recording has no such device or
  // heap. REQUIRES: `trace` outlives the object.
  static absl::StatusOr<LayerSelection> Make(const analysis::Trace& trace,
                                             std::optional<int32_t> device,
                                             const std::string& heap);

  const std::set<int32_t>& devices() const { return devices_; }
  // Whether the blocks of a framework stand for the driver memory that contains them.
  bool of_blocks() const { return !heap_ && !with_blocks_.empty(); }
  bool Selects(analysis::RowId row) const;

 private:
  LayerSelection(const analysis::Trace& trace, std::optional<uint16_t> heap)
      : trace_(&trace), heap_(heap) {}

  const analysis::Trace* trace_;
  std::optional<uint16_t> heap_;
  std::set<int32_t> devices_, with_blocks_;
};

// "cuda:0", or "host".
std::string DeviceLabel(int32_t device);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PROFILE_LAYER_SELECTION_H_
