// analysis/show/changes.h
//
// The change of what a device holds between two moments, by stack.
//
// Thread safety: pure functions. Cost: one walk over the rows.

#ifndef GMT_ANALYSIS_SHOW_CHANGES_H_
#define GMT_ANALYSIS_SHOW_CHANGES_H_

#include <cstdint>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct StackChange {
  uint32_t stack = 0;  // 0 if unknown
  uint32_t heap = 0;
  uint64_t before_bytes = 0, after_bytes = 0;
  uint64_t before_count = 0, after_count = 0;

  int64_t bytes() const { return static_cast<int64_t>(after_bytes - before_bytes); }
};

// A device's blocks after two steps, or its driver memory if it has no blocks; for the host, its
// memory. Largest growth first, then largest shrinkage; omits unchanged stacks. The sum equals the
// change of the device's live bytes (analysis/loop/phases.h, CycleUse).
std::vector<StackChange> ChangesBetween(const Trace& trace, int32_t device, Step before,
                                        Step after);

// What the device held after a step, most bytes first: ChangesBetween() nothing and that.
std::vector<StackChange> HeldByStack(const Trace& trace, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_CHANGES_H_
