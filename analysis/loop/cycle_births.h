// analysis/loop/cycle_births.h
//
// Selects the memory from which the steps of a loop are inferred (analysis/loop/cycle_anchor.h).
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANALYSIS_LOOP_CYCLE_BIRTHS_H_
#define GMT_ANALYSIS_LOOP_CYCLE_BIRTHS_H_

#include "analysis/trace/trace.h"

namespace gmt::analysis {

// Blocks if a framework has any, otherwise driver memory: the memory with the most informative
// stacks.
class Births {
 public:
  explicit Births(const Trace& trace) : rows_(trace.rows) {
    for (RowId row = 0; row < rows_.count() && !blocks_; ++row) blocks_ = rows_.IsBlock(row);
  }
  bool Counts(RowId row) const {
    if (rows_.IsRegion(row)) return false;
    const uint32_t heap = rows_.heap[row];
    return blocks_ ? heap > kHostHeap
                   : heap == kDriverHeap && (rows_.flags[row] & kRowHoldsBlocks) == 0;
  }

 private:
  const Rows& rows_;
  bool blocks_ = false;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_CYCLE_BIRTHS_H_
