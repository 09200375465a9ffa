// viewer/html/lane_walk.h
//
// The births and deaths of a lane's blocks, in order.
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_HTML_LANE_WALK_H_
#define GMT_VIEWER_HTML_LANE_WALK_H_

#include "analysis/trace/trace.h"
#include "viewer/index/view_index.h"

namespace gmt::viewer {

inline bool IsIn(const Lane& lane, const analysis::Rows& rows, analysis::RowId row) {
  return rows.device[row] == lane.device && rows.heap[row] == lane.heap;
}

// Calls visit(row, is_death, step) for each. Memory held before the recording comes first, born in
// step 0.
template <typename Visit>
void WalkLane(const analysis::Trace& trace, const Lane& lane, Visit visit) {
  for (analysis::RowId row = 0; row < trace.rows.count(); ++row) {
    if (trace.rows.birth[row] == 0 && IsIn(lane, trace.rows, row)) visit(row, false, 0u);
  }
  analysis::Step step = 0;
  for (const analysis::StepRecord& record : trace.steps) {
    ++step;
    if (record.row == analysis::kNoRow || !IsIn(lane, trace.rows, record.row)) continue;
    visit(record.row, record.is_death, step);
  }
}

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_LANE_WALK_H_
