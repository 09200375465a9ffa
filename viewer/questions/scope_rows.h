// viewer/questions/scope_rows.h
//
// Enumerates the blocks of a scope (queries.h, Scope), which all answers count.
//
//   event     from                to
//   A  ---------|------------------|-----     live
//   B  ---------|----|             |          growth: -1
//   C           |  --|---|         |          born
//   D           |        |---------|-----     live, growth: +1, born, kept
//
// Thread safety: one thread at a time. Cost: that of HeldRows; for kBorn and kKept, the births of
// the range.

#ifndef GMT_VIEWER_QUESTIONS_SCOPE_ROWS_H_
#define GMT_VIEWER_QUESTIONS_SCOPE_ROWS_H_

#include <vector>

#include "absl/status/status.h"
#include "viewer/questions/row_filter.h"

namespace gmt::viewer {

// Returns INVALID_ARGUMENT if lane or events are not in the recording.
absl::Status CheckScope(const Recording& recording, const Scope& scope);

// Calls visit(row, sign) for each block, by birth, until it returns false; for kGrowth first for
// all blocks that were added (sign 1), then for all that went away (-1). REQUIRES: CheckScope()
// succeeded.
template <typename Visit>
void ForEachRow(Recording& recording, const Scope& scope, RowFilter& filter, const Visit& visit) {
  const analysis::Rows& rows = recording.rows();
  const LaneMemory lane = recording.lanes[scope.lane];
  const auto held = [&](uint32_t at, uint32_t not_at, bool has_not_at, int sign) {
    for (const analysis::RowId row : recording.held.After(at)) {
      if (!recording.IsIn(lane, row) || !rows.HeldAfter(row, at)) continue;
      if (has_not_at && rows.HeldAfter(row, not_at)) continue;
      if (filter.Matches(row) && !visit(row, sign)) return false;
    }
    return true;
  };
  if (scope.of == Scope::kLive) return void(held(scope.to, 0, false, 1));
  if (scope.of == Scope::kGrowth) {
    return void(held(scope.to, scope.from, true, 1) && held(scope.from, scope.to, true, -1));
  }
  for (uint32_t event = scope.from + 1; event <= scope.to; ++event) {
    const analysis::StepRecord record = recording.trace().steps[event - 1];
    if (record.is_death || record.row == analysis::kNoRow || rows.birth[record.row] != event) {
      continue;
    }
    if (!recording.IsIn(lane, record.row)) continue;
    if (scope.of == Scope::kKept && rows.death[record.row] <= scope.to) continue;
    if (filter.Matches(record.row) && !visit(record.row, 1)) return;
  }
}

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_SCOPE_ROWS_H_
