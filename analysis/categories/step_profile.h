// analysis/categories/step_profile.h
//
// StepProfile: of what a step of the training loop holds, what stays and what comes with the batch.
//
//   bytes   ^        peak
//           |     __/\__            variable: what a step adds at its peak
//           |____/      \____       floor: what no step is without
//           +---------------------> step
//
// Where batches differ in size, the bytes that each stack allocates in a step are fitted against the
// bytes of its inputs: what does not depend on them, what grows with them, what grows with their
// square (attention over a sequence that gets longer). The median of all steps but the first counts.
//
// Thread safety: pure functions. Cost: one walk over the steps of a trace; nothing is kept for a row.

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
  double per_input_byte = 0;  // further bytes for one more byte of input, at the average input
};

struct InputGrowth {
  uint64_t least = 0, most = 0, average = 0;  // bytes of inputs in a step
  // Of what is allocated in an average step.
  uint64_t constant_bytes = 0, linear_bytes = 0, quadratic_bytes = 0, unclear_bytes = 0;
  std::vector<StackGrowth> stacks;  // most bytes first
  // Of the steps' peaks; kUnclear: no fit that holds.
  Growth peak = Growth::kUnclear;
  // The peak to expect of inputs twice the average; 0: no fit, or the peak does not grow with them.
  uint64_t peak_with_twice = 0;
};

struct StepProfile {
  int32_t device = 0;
  uint64_t steps = 0;            // that it is made of
  uint64_t floor = 0, peak = 0;  // bytes, medians
  uint64_t variable() const { return peak - floor; }
  // Of a step in the middle, whose floor and peak are nearest to these.
  std::vector<CategoryUse> floor_uses, peak_uses;
  // If inputs are known, differ by 10 % or more, and something that a step allocates grows with them.
  std::optional<InputGrowth> inputs;
  bool inputs_known = false;
};

// Nothing where fewer than three steps of a loop were seen, or nothing lies on the device.
std::optional<StepProfile> MakeStepProfile(const Examination& examination,
                                           const Categories& categories, int32_t device);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_STEP_PROFILE_H_
