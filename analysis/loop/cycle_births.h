// analysis/loop/cycle_births.h
//
// Selects the memory from which the steps of a loop are inferred (analysis/loop/cycle_anchor.h).
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANALYSIS_LOOP_CYCLE_BIRTHS_H_
#define GMT_ANALYSIS_LOOP_CYCLE_BIRTHS_H_

#include <algorithm>

#include "analysis/trace/row_kinds.h"

namespace gmt::analysis {

// Blocks if a framework has any, otherwise driver memory: the memory with the most informative
// stacks.
class Births {
 public:
  // REQUIRES: `kinds` outlives this object.
  explicit Births(const RowKinds& kinds)
      : counts_(kinds, [has_blocks = HasBlocks(kinds)](const RowKind& kind) {
          return has_blocks
                     ? kind.is_block()
                     : kind.heap == kDriverHeap && !kind.is_region() && !kind.Has(kRowHoldsBlocks);
        }) {}

  bool Counts(RowId row) const { return counts_.Of(row); }

 private:
  static bool HasBlocks(const RowKinds& kinds) {
    return std::any_of(kinds.all().begin(), kinds.all().end(),
                       [](const RowKind& kind) { return kind.is_block(); });
  }

  const KindProperty counts_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_CYCLE_BIRTHS_H_
