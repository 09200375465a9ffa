// analysis/show/changes.h
//
// What changed between two moments, by stack: what a device held more or less.
//
// Thread safety: pure functions. Cost: one walk over the rows.

#ifndef GMT_ANALYSIS_SHOW_CHANGES_H_
#define GMT_ANALYSIS_SHOW_CHANGES_H_

#include <cstdint>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct StackChange {
  uint32_t stack = 0;  // 0: not known
  uint32_t heap = 0;
  uint64_t before_bytes = 0, after_bytes = 0;
  uint64_t before_count = 0, after_count = 0;

  int64_t bytes() const { return static_cast<int64_t>(after_bytes - before_bytes); }
};

// Of a device after two steps: of its blocks where it has any, else of its driver's memory; of the host,
// its memory. Biggest growth first, then biggest shrinkage; what is the same is left out. The sum is
// what the device's live bytes changed by (analysis/loop/phases.h, CycleUse).
std::vector<StackChange> ChangesBetween(const Trace& trace, int32_t device, Step before,
                                        Step after);

// What it held after a step, most bytes first: ChangesBetween nothing and that.
std::vector<StackChange> HeldByStack(const Trace& trace, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_CHANGES_H_
