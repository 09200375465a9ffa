// analysis/oom/expected_peak.h
//
// The peak memory that the step of the failed request would have reached without the failure. Only
// its comparison with what the device can provide separates a device that is too small from
// fragmented free memory: every caching allocator has holes when it fails.
//
//   expected = floor + fixed + ratio x variable
//
//   floor      what is held throughout this pass: parameters, optimizer state, leaks
//   fixed      above that at the peak of an earlier pass: gradients, and the part by which blocks
//              are larger than requested, which do not depend on the inputs
//   variable   the rest of that peak
//   ratio      requested bytes, apart from floor and fixed, at the failure / at the same place of
//              the earlier pass
//
// analysis/oom/passes.h defines passes and "the same place". The earlier pass whose inputs are
// closest in size is used. Passes of other kinds that followed it in its step may have a higher
// peak.
//
// Thread safety: pure functions. Cost: two walks over the steps before the failure, and a few over
// the rows.

#ifndef GMT_ANALYSIS_OOM_EXPECTED_PEAK_H_
#define GMT_ANALYSIS_OOM_EXPECTED_PEAK_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct ExpectedPeak {
  enum class Basis : uint8_t {
    kSoFar,         // what was live plus the request: a lower bound; also while generating text
    kFirstStep,     // that, plus what the backward pass and the optimizer still need
    kEarlierSteps,  // an earlier step, scaled by the inputs
    kGrowth,        // a tensor that is concatenated repeatedly: unbounded
  };
  Basis basis = Basis::kSoFar;
  uint64_t bytes = 0;        // in blocks of the framework, on the device of the failure
  uint64_t floor_bytes = 0;  // the part that does not depend on the inputs
  uint64_t least_bytes = 0;  // with inputs of any size: the floor, or what the optimizer needs
  // kEarlierSteps: their number, the maximum of their peaks, and the ratio of the compared step.
  uint64_t earlier_steps = 0, earlier_peak = 0;
  double input_ratio = 1;
  // Needed in addition if the optimizer keeps more than the least state.
  uint64_t perhaps_bytes = 0;
  bool gradients_go = false;  // the previous step's gradients are set to zero before the peak

  // The peak if inputs had `share` of their size.
  uint64_t WithInputs(double share) const;
};
// "so_far", "first_step", "earlier_steps", "growth".
std::string_view NameOf(ExpectedPeak::Basis basis);

// What is known of a first step when it fails; all 0 without training or after an optimizer step.
struct FirstStepNeeds {
  uint64_t parameter_bytes = 0;
  uint64_t trained_bytes = 0;  // the parameters that get a gradient
  // The optimizer's state at least, whether created yet or not, and what its class may keep more.
  uint64_t optimizer_bytes = 0, more_optimizer_bytes = 0;
  uint64_t made_bytes = 0;       // the part that was live at the failure
  uint64_t workspace_bytes = 0;  // workspaces of libraries
  double forward_share = 1;      // completed fraction of the forward pass, 0 to 1
  // What the backward pass needs at its beginning, while it still has everything that the forward
  // pass saved; 0 if it has begun.
  uint64_t backward_bytes = 0;
};

// The steps of the training loop that ended before the failure, in order: the recording's steps,
// unless they may be parts of steps; then those that the optimizer ended, even if it is only one.
std::vector<Cycle> StepsBefore(const Examination& examination, const FailedAllocation& failed);

// REQUIRES: a framework's allocator failed; `earlier` are StepsBefore it.
ExpectedPeak ExpectPeak(const Examination& examination, const Categories& categories,
                        const FailedAllocation& failed, const std::vector<Cycle>& earlier,
                        const FirstStepNeeds& needs);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_EXPECTED_PEAK_H_
