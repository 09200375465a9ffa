// analysis/examination/failures.h
//
// Selects the failed allocation that an out-of-memory answer is about. Allocators retry after
// releasing cached memory, so a refusal by the driver alone is not a failure.
//
//   driver refuses, allocator releases, driver agrees    recovered: no failure
//   driver refuses twice, the framework gives up         one failure: the framework's
//   driver refuses NCCL                                  a failure
//   driver refuses, the next request of that thread is
//   as large and succeeds                                recovered
//
// Thread safety: pure function. Cost: one walk over the steps if the driver refused anything.

#ifndef GMT_ANALYSIS_EXAMINATION_FAILURES_H_
#define GMT_ANALYSIS_EXAMINATION_FAILURES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/examination/examination.h"

namespace gmt::analysis {

struct Failures {
  uint64_t count = 0;              // on GPUs, not recovered
  uint64_t recovered = 0;          // refusals by the driver that were recovered
  uint64_t of_host = 0;            // of pinned host memory
  std::vector<size_t> counted;     // indices in Trace::failed of those in `count`
  std::optional<size_t> decisive;  // the last of them
  bool was_fatal = false;          // whether the process did not continue allocating as before
};

Failures FindFailures(const Examination& examination);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_FAILURES_H_
