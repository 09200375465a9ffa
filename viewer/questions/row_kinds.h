// viewer/questions/row_kinds.h
//
// RowKinds: the blocks of a recording by what a table of a range (range_table.h) distinguishes,
// and what each kind held, allocated and freed in any range.
//
// Thread safety: const methods from any thread. Cost: two walks over the recording to construct it.

#ifndef GMT_VIEWER_QUESTIONS_ROW_KINDS_H_
#define GMT_VIEWER_QUESTIONS_ROW_KINDS_H_

#include <cstdint>
#include <vector>

#include "analysis/report/range_totals.h"

namespace gmt::viewer {

struct Recording;

class RowKinds {
 public:
  // `spacing`: see RangeTotals.
  explicit RowKinds(Recording& recording, analysis::Step spacing = analysis::RangeTotals::kSpacing);

  // One row of each kind, by kind. All rows of a kind are in one lane, and have the same stacks,
  // category, role, type of tensor, stream, thread and name.
  const std::vector<analysis::RowId>& examples() const { return examples_; }
  uint32_t LaneOf(uint32_t kind) const { return totals_.kinds().lanes[kind]; }
  uint32_t Of(analysis::RowId row) const { return totals_.kinds().of_rows[row]; }
  const analysis::RangeTotals& totals() const { return totals_; }

 private:
  analysis::RangeTotals::Kinds Number(Recording& recording);

  std::vector<analysis::RowId> examples_;
  const analysis::RangeTotals totals_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_ROW_KINDS_H_
