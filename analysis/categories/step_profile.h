// analysis/categories/step_profile.h
//
// StepProfile: which part of a training step's memory is permanent, and which depends on the batch.
//
//   bytes   ^        peak
//           |     __/\__            variable: what a step adds at its peak
//           |____/      \____       floor: what every step holds throughout
//           +---------------------> step
//
// If batches differ in size, the bytes that each stack allocates in a step are fitted against the
// bytes of its inputs: constant, linear or quadratic (attention over a longer sequence). Values are
// medians over all steps except the first.
//
// Thread safety: pure functions. Cost: one walk over the steps of a trace; no memory per row.

#ifndef GMT_ANALYSIS_CATEGORIES_STEP_PROFILE_H_
#define GMT_ANALYSIS_CATEGORIES_STEP_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"

namespace gmt::analysis {

enum class Growth : uint8_t { kConstant, kLinear, kQuadratic, kUnclear };

// "constant", "linear", "quadratic", "unclear".
std::string_view NameOf(Growth growth);

struct StackGrowth {
  uint32_t stack = 0;
  Growth growth = Growth::kUnclear;
  uint64_t bytes = 0;         // allocated in a step, on average
  double per_input_byte = 0;  // additional bytes per byte of input, at the average input
};

struct InputGrowth {
  uint64_t least = 0, most = 0, average = 0;  // bytes of inputs in a step
  // Bytes allocated in an average step.
  uint64_t constant_bytes = 0, linear_bytes = 0, quadratic_bytes = 0, unclear_bytes = 0;
  std::vector<StackGrowth> stacks;  // most bytes first
  // How the steps' peaks grow; kUnclear if no fit is good enough.
  Growth peak = Growth::kUnclear;
  // The expected peak with inputs of twice the average size; 0 without a fit or if the peak does
  // not grow.
  uint64_t peak_with_twice = 0;
};

struct StepProfile {
  int32_t device = 0;
  uint64_t steps = 0;            // the number of steps used
  uint64_t floor = 0, peak = 0;  // bytes, medians
  uint64_t variable() const { return peak - floor; }
  // What a typical step holds: the one whose floor and peak are nearest to these.
  std::vector<CategoryUse> floor_uses, peak_uses;
  // Set if inputs are known, differ by 10 % or more, and some allocation of a step grows with them.
  std::optional<InputGrowth> inputs;
  bool inputs_known = false;
};

// Returns nullopt if fewer than three steps of a loop were seen, or nothing is on the device.
std::optional<StepProfile> MakeStepProfile(const Examination& examination,
                                           const Categories& categories, int32_t device);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_STEP_PROFILE_H_
