// analysis/estimate/recorded.h
//
// What a recording says about the quantities of an estimate: what it was a run of, and how much
// each group of parts held at the peak.
//
// Groups rather than parts, because log-probabilities and what one layer computes have no category
// of their own (analysis/categories/categories.h).
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_ESTIMATE_RECORDED_H_
#define GMT_ANALYSIS_ESTIMATE_RECORDED_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/categories/categories.h"
#include "analysis/estimate/estimate.h"
#include "analysis/examination/examination.h"

namespace gmt::analysis {

enum class PartGroup : uint8_t {
  kWeights,
  kGradients,
  kOptimizerState,
  kComputation,  // activations, recomputed ones, logits, temporaries
  kKvCache,
  kOther,  // inputs, workspaces, communication, unknown
};
inline constexpr size_t kPartGroups = 6;
std::string_view NameOf(PartGroup group);  // as in JSON
using GroupBytes = std::array<uint64_t, kPartGroups>;

struct Recorded {
  int32_t device = 0;
  std::string gpu_name;            // empty if unknown
  uint64_t gpu_bytes = 0;          // 0 if unknown
  uint64_t batch = 0, length = 0;  // 0 if unknown
  // What the program had allocated at the moment at which that was most. The groups add up to it.
  uint64_t peak = 0;
  GroupBytes groups{};
};

// Returns what is known of the device with the highest peak.
Recorded RecordedFacts(const Examination& examination, const Categories& categories);

// The optimizer whose state has the recorded size in proportion to the weights.
OptimizerKind OptimizerOf(const Recorded& recorded);

// The same groups of an estimate. Its context and cache belong to none: the program did not
// allocate them.
GroupBytes GroupsOf(const MomentEstimate& moment);

// The moment whose groups are nearest to the recorded ones. A run need not have its peak at the
// moment at which the estimate has it.
const MomentEstimate& NearestMoment(const Estimate& estimate, const Recorded& recorded);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_ESTIMATE_RECORDED_H_
