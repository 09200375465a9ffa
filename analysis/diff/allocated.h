// analysis/diff/allocated.h
//
// What is allocated on a device, not counting what an allocator merely keeps (IsAllocated() in
// analysis/examination/replay.h), by the stacks that requested it. Each byte is counted once.
//
// Thread safety: pure functions. Cost: one walk over steps, or over rows.

#ifndef GMT_ANALYSIS_DIFF_ALLOCATED_H_
#define GMT_ANALYSIS_DIFF_ALLOCATED_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/replay.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

// What one stack has allocated in one heap, at one moment.
struct StackUse {
  uint32_t stack = 0, forward_stack = 0;
  uint32_t heap = 0;
  uint64_t bytes = 0, count = 0;
  uint64_t requested = 0;  // the part of `bytes` that was requested, as far as known
  Category category = Category::kUnknown;  // that of its largest piece
};

struct AllocatedState {
  std::vector<StackUse> stacks;  // ordered by stack id
  uint64_t bytes = 0;            // sum of all
  uint64_t reserved_bytes = 0;   // driver memory that holds blocks
};
AllocatedState AllocatedAfter(const Trace& trace, const Categories& categories, int32_t device,
                              Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_ALLOCATED_H_
