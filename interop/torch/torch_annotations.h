// interop/torch/torch_annotations.h
//
// Ranges and marks as a snapshot's external_annotations: {'name', 'stage': 'START' or 'END',
// 'device', 'time_us'}.
//
//   range                   START, END
//   marks named "step"      "step 12" from one to the next: what repeats is a range
//   any other mark          START and END at once
//
// The argument of PyTorch's record_function is not recorded. Such a range is named after the code
// that opened it: "Optimizer.step", "Optimizer.zero_grad", "enumerate(DataLoader)", "ProfilerStep",
// or the place in the program, "train.py:40 main".
//
// Thread safety: pure functions.

#ifndef GMT_INTEROP_TORCH_TORCH_ANNOTATIONS_H_
#define GMT_INTEROP_TORCH_TORCH_ANNOTATIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/stacks/frames.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "interop/torch/torch_selection.h"

namespace gmt::interop {

struct TorchAnnotation {
  std::string name;
  bool ends = false;
  int32_t device = 0;
  int64_t t_ns = 0;
};

// Returns the annotations in the window, in order. Those without a device are assigned to `device`.
std::vector<TorchAnnotation> TorchAnnotations(const analysis::Trace& trace,
                                              const format::Definitions& definitions,
                                              const TorchSelection& selection, int32_t device);

// Returns "train.py:40 main" for all frames, innermost first, or "record_function" if they name no
// place.
std::string RecordFunctionName(const std::vector<analysis::FrameText>& frames);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_ANNOTATIONS_H_
