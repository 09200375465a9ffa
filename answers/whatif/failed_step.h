// answers/whatif/failed_step.h
//
// FailedStep: what the step in which a program ran out of memory would have needed in all. A replay
// only has the requests that the program made before.
//
// Thread safety: immutable.

#ifndef GMT_ANSWERS_WHATIF_FAILED_STEP_H_
#define GMT_ANSWERS_WHATIF_FAILED_STEP_H_

#include <cstdint>

#include "analysis/oom/expected_peak.h"
#include "analysis/trace/trace.h"
#include "analysis/whatif/allocator_history.h"
#include "answers/recording.h"

namespace gmt::answers {

class FailedStep {
 public:
  FailedStep(const Recording& recording, const analysis::AllocatorHistory& history);

  // Whether the program ended because of a failed request.
  bool has_failed() const { return has_failed_; }
  // Whether the step's needs are those of an earlier step, scaled. In a first step, they are a
  // lower bound: what it would have requested later is not known.
  bool is_compared() const {
    return expected_.basis == analysis::ExpectedPeak::Basis::kEarlierSteps;
  }
  // When the request failed.
  analysis::Step step() const { return step_; }
  // What the driver must provide to the process if inputs have `factor` times the size; 0 if
  // unknown.
  uint64_t Needs(double factor) const;

 private:
  bool has_failed_ = false;
  analysis::Step step_ = 0;
  analysis::ExpectedPeak expected_;
  uint64_t beside_bytes_ = 0;  // what the process held beside the framework's blocks
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_WHATIF_FAILED_STEP_H_
