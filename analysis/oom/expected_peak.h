// analysis/oom/expected_peak.h
//
// The most memory that the step in which a request failed would have held, had it not failed. Only
// that, against what the device can give, separates a device that is too small from one whose free
// memory is in pieces: every caching allocator has holes when it fails.
//
//   expected = floor + fixed + ratio x variable
//
//   floor      what is held through the whole of this step: parameters, optimizer state, leaks
//   fixed      at the peak of an earlier step above that: gradients, whose size does not depend on
//              the inputs
//   variable   the rest of that peak
//   ratio      bytes asked for, beside floor and fixed, at the failure / at the same place of the
//              earlier step
//
// "The same place" is the same request: the same stacks, as often seen in its step. Of the earlier
// steps the one whose inputs come nearest in size is compared.
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
    kSoFar,         // what was live and the request: a lower bound
    kFirstStep,     // that, and what the backward pass and the optimizer still need
    kEarlierSteps,  // an earlier step, scaled by the inputs
    kGrowth,        // a tensor that is joined with more again and again: no end is known
  };
  Basis basis = Basis::kSoFar;
  uint64_t bytes = 0;        // in blocks of the framework, on the device of the failure
  uint64_t floor_bytes = 0;  // of that: what the inputs do not change
  uint64_t least_bytes = 0;  // however small the inputs are: the floor, or what the optimizer needs
  // kEarlierSteps: how many, the most that one of them held, and the compared step's ratio.
  uint64_t earlier_steps = 0, earlier_peak = 0;
  double input_ratio = 1;
  bool gradients_go = false;  // those of the step before are set to zero before the peak

  // The peak with inputs of that share of their size.
  uint64_t WithInputs(double share) const;
};
// "so_far", "first_step", "earlier_steps", "growth".
std::string_view NameOf(ExpectedPeak::Basis basis);

// What is known of a first step when it fails; all 0 if nothing trains, or an optimizer has stepped.
struct FirstStepNeeds {
  uint64_t parameter_bytes = 0;
  uint64_t trained_bytes = 0;    // of the parameters that get a gradient
  uint64_t optimizer_bytes = 0;  // of the optimizer's state, made or not
  uint64_t made_bytes = 0;       // of that, what was live at the failure
  double forward_share = 1;      // of the forward pass that is done, 0 to 1
};

// The steps of the training loop that ended before the failure, in order: the recording's, unless
// these may be parts of steps; then those that the optimizer ended, be it only one.
std::vector<Cycle> StepsBefore(const Examination& examination, const FailedAllocation& failed);

// REQUIRES: a framework's allocator failed; `earlier` are StepsBefore it.
ExpectedPeak ExpectPeak(const Examination& examination, const Categories& categories,
                        const FailedAllocation& failed, const std::vector<Cycle>& earlier,
                        const FirstStepNeeds& needs);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_EXPECTED_PEAK_H_
