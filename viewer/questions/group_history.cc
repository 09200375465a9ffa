#include "viewer/questions/group_history.h"

#include <algorithm>
#include <utility>

#include "viewer/questions/recording.h"
#include "viewer/questions/row_filter.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;
using analysis::Step;

constexpr uint32_t kNoGroup = UINT32_MAX;

// By row; kNoGroup: not of the lane, or not let through. One column in the order of the rows, so that
// the walk over the events looks up one number where it would look up five.
std::vector<uint32_t> GroupsOfRows(Recording& recording, uint32_t lane, RowFilter& filter,
                                   Grouper& grouper) {
  const Questions::Lane of = recording.lanes[lane];
  std::vector<uint32_t> groups(recording.rows().count(), kNoGroup);
  for (RowId row = 0; row < groups.size(); ++row) {
    if (recording.IsIn(of, row) && filter.Matches(row)) groups[row] = grouper.Of(row);
  }
  return groups;
}

std::unique_ptr<GroupHistory> MakeHistory(Recording& recording, uint32_t lane, TableQuery::By by,
                                          RowFilter& filter) {
  auto history = std::make_unique<GroupHistory>(recording, by);
  const std::vector<uint32_t> groups = GroupsOfRows(recording, lane, filter, history->grouper);
  const analysis::Rows& rows = recording.rows();
  std::vector<uint64_t>& peaks = history->peak_bytes;
  std::vector<uint64_t> live(history->grouper.count(), 0);
  history->blocks.assign(live.size(), 0);
  const auto bear = [&](RowId row) {
    live[groups[row]] += rows.size[row];
    ++history->blocks[groups[row]];
  };
  for (RowId row = 0; row < groups.size(); ++row) {
    if (groups[row] != kNoGroup && rows.birth[row] == 0) bear(row);
  }
  peaks = live;
  const analysis::Steps& steps = recording.trace().steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const analysis::StepRecord record = steps[i];
    if (record.row == analysis::kNoRow || groups[record.row] == kNoGroup) continue;
    const uint32_t group = groups[record.row];
    if (record.is_death) {
      live[group] -= rows.size[record.row];
    } else {
      bear(record.row);
      peaks[group] = std::max(peaks[group], live[group]);
    }
  }
  return history;
}

}  // namespace

GroupHistory& GroupHistories::Get(Recording& recording, uint32_t lane, TableQuery::By by,
                                  const Filter& filter, RowFilter& row_filter) {
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.lane == lane && entry.by == by && entry.filter == filter;
  });
  if (known != entries_.end()) {
    std::rotate(known, known + 1, entries_.end());
    return *entries_.back().history;
  }
  if (entries_.size() == kKept) entries_.erase(entries_.begin());
  entries_.push_back({lane, by, filter, MakeHistory(recording, lane, by, row_filter)});
  return *entries_.back().history;
}

}  // namespace gmt::viewer
