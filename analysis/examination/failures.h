// analysis/examination/failures.h
//
// Which failed allocation an answer about running out of memory speaks of. Allocators ask the driver
// again after giving back what they can, so that a refusal by itself is none.
//
//   driver refuses, gives back, driver agrees            mended: no failure
//   driver refuses twice, the framework gives up         one failure: the framework's
//   driver refuses NCCL                                  a failure
//   driver refuses, the next request of that thread is
//   as large and succeeds                                mended
//
// Thread safety: pure function. Cost: a walk over the steps where the driver refused something.

#ifndef GMT_ANALYSIS_EXAMINATION_FAILURES_H_
#define GMT_ANALYSIS_EXAMINATION_FAILURES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/examination/examination.h"

namespace gmt::analysis {

struct Failures {
  uint64_t count = 0;              // on devices, that were not mended
  uint64_t mended = 0;             // refusals of the driver
  uint64_t of_host = 0;            // pinned host memory
  std::vector<size_t> counted;     // of Trace::failed: those of `count`
  std::optional<size_t> decisive;  // the last of them
  bool was_fatal = false;          // after it the process did not go on allocating as before
};

Failures FindFailures(const Examination& examination);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_FAILURES_H_
