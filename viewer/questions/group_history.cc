#include "viewer/questions/group_history.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "viewer/questions/recording.h"
#include "viewer/questions/row_filter.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

using Histories = std::vector<std::unique_ptr<GroupHistory>>;

constexpr uint32_t kNoGroup = UINT32_MAX;

// Computes histories in one walk over all events for any number of lanes. Groups of all lanes are
// numbered jointly in one column by row, so that the walk looks up one number instead of five.
class HistoryMaker {
 public:
  HistoryMaker(Recording& recording, std::vector<uint32_t> lanes, TableQuery::By by)
      : recording_(recording), lanes_(std::move(lanes)), numbers_(lanes_.size()) {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      histories_.push_back(std::make_unique<GroupHistory>(recording, by));
    }
  }

  Histories Make(RowFilter& filter) {
    NumberRows(filter);
    Walk();
    for (size_t i = 0; i < lanes_.size(); ++i) {
      for (const uint32_t number : numbers_[i]) {
        histories_[i]->peak_bytes.push_back(sums_[number].peak);
        histories_[i]->blocks.push_back(sums_[number].blocks);
      }
    }
    return std::move(histories_);
  }

 private:
  struct Sum {
    uint64_t live = 0, peak = 0, blocks = 0;
  };

  // Returns an index into `lanes_`, or their count if there is none. Adjacent rows are mostly of
  // one lane.
  size_t LaneOf(RowId row) {
    if (last_ < lanes_.size() && recording_.IsIn(recording_.lanes[lanes_[last_]], row)) {
      return last_;
    }
    for (size_t i = 0; i < lanes_.size(); ++i) {
      if (recording_.IsIn(recording_.lanes[lanes_[i]], row)) return last_ = i;
    }
    return lanes_.size();
  }

  void NumberRows(RowFilter& filter) {
    groups_.assign(recording_.rows().count(), kNoGroup);
    for (RowId row = 0; row < groups_.size(); ++row) {
      const size_t lane = LaneOf(row);
      if (lane == lanes_.size() || !filter.Matches(row)) continue;
      std::vector<uint32_t>& numbers = numbers_[lane];
      const uint32_t group = histories_[lane]->grouper.Of(row);
      if (group == numbers.size()) {
        numbers.push_back(static_cast<uint32_t>(sums_.size()));
        sums_.emplace_back();
      }
      groups_[row] = numbers[group];
    }
  }

  void Walk() {
    const analysis::Rows& rows = recording_.rows();
    const auto bear = [&](RowId row) {
      Sum& sum = sums_[groups_[row]];
      sum.live += rows.size[row];
      ++sum.blocks;
      sum.peak = std::max(sum.peak, sum.live);
    };
    for (RowId row = 0; row < groups_.size(); ++row) {
      if (groups_[row] != kNoGroup && rows.birth[row] == 0) bear(row);
    }
    const analysis::Steps& steps = recording_.trace().steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      const analysis::StepRecord record = steps[i];
      if (record.row == analysis::kNoRow || groups_[record.row] == kNoGroup) continue;
      if (record.is_death) {
        sums_[groups_[record.row]].live -= rows.size[record.row];
      } else {
        bear(record.row);
      }
    }
  }

  Recording& recording_;
  const std::vector<uint32_t> lanes_;
  size_t last_ = 0;
  Histories histories_;
  std::vector<std::vector<uint32_t>> numbers_;  // by lane and group: index into sums_
  std::vector<uint32_t> groups_;  // by row: index into sums_; kNoGroup: no lane, or filtered out
  std::vector<Sum> sums_;
};

}  // namespace

GroupHistory& GroupHistories::OfStacks(Recording& recording, uint32_t lane) {
  if (of_stacks_.empty()) {
    std::vector<uint32_t> lanes(recording.lanes.size());
    std::iota(lanes.begin(), lanes.end(), 0u);
    absl::StatusOr<RowFilter> all = RowFilter::Make(recording, {});
    of_stacks_ = HistoryMaker(recording, std::move(lanes), TableQuery::kStack).Make(*all);
  }
  return *of_stacks_[lane];
}

void GroupHistories::ForgetCategories() {
  std::erase_if(entries_, [](const Entry& entry) {
    return entry.by == TableQuery::kCategory || !entry.filter.category.empty();
  });
}

GroupHistory& GroupHistories::Get(Recording& recording, uint32_t lane, TableQuery::By by,
                                  const Filter& filter, RowFilter& row_filter) {
  if (by == TableQuery::kStack && filter == Filter{}) return OfStacks(recording, lane);
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.lane == lane && entry.by == by && entry.filter == filter;
  });
  if (known != entries_.end()) {
    std::rotate(known, known + 1, entries_.end());
    return *entries_.back().history;
  }
  if (entries_.size() == kKept) entries_.erase(entries_.begin());
  Histories made = HistoryMaker(recording, {lane}, by).Make(row_filter);
  entries_.push_back({lane, by, filter, std::move(made.front())});
  return *entries_.back().history;
}

}  // namespace gmt::viewer
