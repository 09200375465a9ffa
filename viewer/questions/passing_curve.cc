#include "viewer/questions/passing_curve.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "viewer/questions/scope_rows.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

// The changes of the total at each column, from the blocks that begin or end there.
class Changes {
 public:
  Changes(const analysis::Rows& rows, const std::vector<uint32_t>& peaks)
      : rows_(rows), peaks_(peaks), changes_(peaks.size() + 1) {}

  // `column`: the first whose peak is not before the row's birth.
  void Add(RowId row, size_t column) {
    const auto from = peaks_.begin() + static_cast<std::ptrdiff_t>(column);
    const auto end = std::lower_bound(from, peaks_.end(), rows_.death[row]);
    changes_[column] += rows_.size[row];
    changes_[static_cast<size_t>(end - peaks_.begin())] -= rows_.size[row];
  }

  std::vector<double> Totals(const std::vector<bool>& is_known) const {
    std::vector<double> totals(peaks_.size(), std::numeric_limits<double>::quiet_NaN());
    uint64_t bytes = 0;
    for (size_t column = 0; column < totals.size(); ++column) {
      bytes += changes_[column];
      if (is_known[column]) totals[column] = static_cast<double>(bytes);
    }
    return totals;
  }

 private:
  const analysis::Rows& rows_;
  const std::vector<uint32_t>& peaks_;
  std::vector<uint64_t> changes_;  // differences, modulo 2^64
};

}  // namespace

absl::StatusOr<PassingCurve> MakePassingCurve(Recording& recording, uint32_t lane,
                                              const Filter& asked, const ColumnPeaks& columns) {
  const std::vector<uint32_t>& peaks = columns.event;
  if (peaks.empty()) return PassingCurve{};
  if (absl::Status status = recording.Check(lane, peaks.back()); !status.ok()) return status;
  absl::StatusOr<RowFilter> filter = RowFilter::Make(recording, asked);
  if (!filter.ok()) return filter.status();

  const analysis::Rows& rows = recording.rows();
  Changes changes(rows, peaks);
  Scope first;
  first.lane = lane;
  first.to = peaks.front();
  ForEachRow(recording, first, *filter, [&](RowId row, int) { return changes.Add(row, 0), true; });
  const LaneMemory of = recording.lanes[lane];
  size_t column = 0;
  for (uint32_t event = peaks.front() + 1; event <= peaks.back(); ++event) {
    const analysis::StepRecord record = recording.trace().steps[event - 1];
    if (record.is_death || record.row == analysis::kNoRow) continue;
    while (peaks[column] < event) ++column;
    if (rows.death[record.row] <= peaks[column] || rows.birth[record.row] != event) continue;
    if (recording.IsIn(of, record.row) && filter->Matches(record.row)) {
      changes.Add(record.row, column);
    }
  }
  return PassingCurve{changes.Totals(columns.is_known)};
}

}  // namespace gmt::viewer
