// analysis/whatif/largest_batch.h
//
// The largest batch with which a recorded training still fits a device: by bisection, each try
// replays of the program with other inputs (changes.h), with frees at their time and later.
//
// Thread safety: pure functions. Cost: a walk over the rows and up to four replays per try;
// about twelve tries.

#ifndef GMT_ANALYSIS_WHATIF_LARGEST_BATCH_H_
#define GMT_ANALYSIS_WHATIF_LARGEST_BATCH_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "analysis/whatif/allocator_history.h"
#include "analysis/whatif/changes.h"

namespace gmt::analysis {

struct LargestBatch {
  // In samples of a forward pass; 0 if not even one fits. If the recorded number is not known, both
  // are in sixteenths of the recorded batch.
  uint64_t batch = 0, recorded = 0;
  bool is_counted = false;    // whether they are samples
  bool is_unlimited = false;  // the search stopped before the device was full

  double factor() const { return static_cast<double>(batch) / static_cast<double>(recorded); }
};

// The program with `factor` times as many samples.
absl::StatusOr<AllocatorHistory> HistoryWithBatch(const AllocatorHistory& history,
                                                  const Trace& trace, const Changes& changes,
                                                  double factor);

// Returns Scenario::step_needs with `factor` times as many samples.
using StepNeeds = absl::FunctionRef<uint64_t(double factor)>;
inline uint64_t NothingElse(double) { return 0; }

// `capacity`: what the driver can provide to the process, in bytes. Fails like
// Changes::ScaleInputs().
absl::StatusOr<LargestBatch> FindLargestBatch(const AllocatorHistory& history, const Trace& trace,
                                              const Changes& changes, uint64_t capacity,
                                              StepNeeds step_needs = NothingElse);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_LARGEST_BATCH_H_
