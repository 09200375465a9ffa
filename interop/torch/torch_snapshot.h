// interop/torch/torch_snapshot.h
//
// Writes a recording as PyTorch's memory snapshot: the pickle that
// torch.cuda.memory._dump_snapshot() writes and that pytorch.org/memory_viz and `python -m
// torch.cuda._memory_viz` read.
//
//   recording                               snapshot
//   what the device did                     device_traces (interop/torch/torch_model.h has the table)
//   what is held at the end of the window   segments, their blocks and the gaps between
//   marks, ranges                           external_annotations
//   settings of the allocator               allocator_settings
//
// The format cannot represent host memory and unmapped physical memory. They are left out, and the
// summary says how much.
//
// Cost: three passes over the trace for each device. Memory: the trace, what is held at one time,
// and the stacks. Thread safety: pure function.

#ifndef GMT_INTEROP_TORCH_TORCH_SNAPSHOT_H_
#define GMT_INTEROP_TORCH_TORCH_SNAPSHOT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <vector>

#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "interop/torch/torch_frames.h"
#include "interop/torch/torch_model.h"
#include "interop/torch/torch_selection.h"

namespace gmt::interop {

// The summary of one device with a trace or segments.
struct TorchDeviceSummary {
  int32_t device = 0;
  uint64_t events = 0;  // events written
  uint64_t events_in_window = 0;
  uint64_t rows_left = 0;     // allocations left out because of the limit
  uint64_t largest_left = 0;  // bytes
  std::optional<int64_t> first_t_ns;
};

struct TorchSnapshotSummary {
  std::vector<TorchDeviceSummary> devices;
  uint64_t events = 0;
  uint64_t segments = 0, blocks = 0;
  uint64_t host_bytes_left_out = 0;      // held at the end
  uint64_t unmapped_bytes_left_out = 0;  // physical memory held at the end
  TorchModelCounts counts;
};

// Writes what `selection` names. `definitions` are those of the trace. Errors: those of the stream.
TorchSnapshotSummary WriteTorchSnapshot(const analysis::Trace& trace,
                                        const format::Definitions& definitions,
                                        const StackFrames& frames_of,
                                        const TorchSelection& selection, std::ostream& out);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_SNAPSHOT_H_
