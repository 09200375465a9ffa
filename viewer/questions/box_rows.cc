#include "viewer/questions/box_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "viewer/index/stack_heights.h"
#include "viewer/questions/scope_rows.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

constexpr size_t kClasses = 64;  // of durations

class BoxFinder {
 public:
  BoxFinder(Recording& recording, const ViewIndex& index, uint32_t lane, const Box& box,
            std::vector<uint32_t> moments)
      : recording_(recording),
        rows_(recording.rows()),
        index_(index),
        lane_(lane),
        box_(box),
        moments_(std::move(moments)),
        changes_(moments_.size() + 1) {}

  // In stack order.
  BoxRows Stacked() {
    FindCandidates();
    StackHeights heights(static_cast<uint32_t>(moments_.size()));
    for (size_t duration = kClasses; duration-- > 0;) {
      for (const Candidate& block : candidates_[duration]) {
        if (heights.IsFullUpTo(box_.high)) return Finish();
        if (heights.IsSeen(block, box_.low, box_.high)) Take(block.row, block.first, block.last);
        heights.Add(block);
      }
    }
    return Finish();
  }

  // By birth.
  BoxRows ByAddress(RowFilter& all, uint32_t from, uint32_t to) {
    const auto add = [&](RowId row, int) {
      const std::optional<double> place = index_.PlaceOf(row);
      if (!place || *place >= box_.high || *place + BytesOf(row) <= box_.low) return true;
      const auto first = std::lower_bound(moments_.begin(), moments_.end(), rows_.birth[row]);
      Take(row, Column(first), Column(DeathFrom(row, first)));
      return true;
    };
    Scope scope;
    scope.lane = lane_;
    scope.to = from;
    ForEachRow(recording_, scope, all, add);
    scope.of = Scope::kBorn;
    scope.from = from;
    scope.to = to;
    ForEachRow(recording_, scope, all, add);
    return Finish();
  }

 private:
  using Moment = std::vector<uint32_t>::const_iterator;

  // Candidates are the blocks that are live after a moment. Those of a class are in order of birth.
  void FindCandidates() {
    const LaneMemory lane = recording_.lanes[lane_];
    for (const RowId row : recording_.held.After(moments_.front())) {
      if (recording_.IsIn(lane, row) && rows_.HeldAfter(row, moments_.front())) {
        AddCandidate(row, moments_.begin());
      }
    }
    Moment moment = moments_.begin();
    for (uint32_t event = moments_.front() + 1; event <= moments_.back(); ++event) {
      const analysis::StepRecord record = recording_.trace().steps[event - 1];
      if (record.is_death || record.row == analysis::kNoRow) continue;
      while (*moment < event) ++moment;
      if (rows_.death[record.row] <= *moment || rows_.birth[record.row] != event) continue;
      if (recording_.IsIn(lane, record.row)) AddCandidate(record.row, moment);
    }
  }

  void AddCandidate(RowId row, Moment first) {
    const uint32_t birth = rows_.birth[row];
    const uint8_t duration = index_.DurationClassOf(box_.axis, birth, rows_.death[row]);
    candidates_[duration].push_back(
        {row, birth, Column(first), Column(DeathFrom(row, first)), 0, BytesOf(row)});
  }

  double BytesOf(RowId row) const { return static_cast<double>(rows_.size[row]); }
  Moment DeathFrom(RowId row, Moment first) const {
    return std::lower_bound(first, moments_.end(), rows_.death[row]);
  }
  uint16_t Column(Moment moment) const { return static_cast<uint16_t>(moment - moments_.begin()); }

  void Take(RowId row, uint16_t first, uint16_t last) {
    found_.rows.push_back(row);
    changes_[first] += rows_.size[row];
    changes_[last] -= rows_.size[row];
  }

  BoxRows Finish() {
    uint64_t bytes = 0, most = 0;
    found_.peak = moments_.front();
    for (size_t i = 0; i < moments_.size(); ++i) {
      bytes += changes_[i];
      if (bytes > most) most = bytes, found_.peak = moments_[i];
    }
    return std::move(found_);
  }

  Recording& recording_;
  const analysis::Rows& rows_;
  const ViewIndex& index_;
  const uint32_t lane_;
  const Box& box_;
  const std::vector<uint32_t> moments_;
  std::array<std::vector<Candidate>, kClasses> candidates_;  // by class
  std::vector<uint64_t> changes_;  // of the bytes in the box, by moment, modulo 2^64
  BoxRows found_;
};

absl::StatusOr<std::vector<uint32_t>> MomentsOf(const ViewIndex& index, uint32_t lane, Axis axis,
                                                uint32_t from, uint32_t to) {
  if (index.stage() < ViewIndex::Stage::kBlocks) {
    return absl::UnavailableError("blocks are still being sorted");
  }
  if (axis == Axis::kStep && !index.has_steps()) {
    return absl::InvalidArgumentError("no steps of a training loop were seen in this recording");
  }
  std::vector<uint32_t> moments;
  const double begin = index.PositionOf(axis, from), end = index.PositionOf(axis, to);
  if (begin < end) {
    const auto peaks = index.SelectPeaks({lane, axis, begin, end, kBoxMoments});
    if (!peaks.ok()) return peaks.status();
    for (const uint32_t peak : peaks->event) {
      const uint32_t event = std::clamp(peak, from, to);
      if (moments.empty() || moments.back() < event) moments.push_back(event);
    }
  }
  if (moments.empty() || moments.back() < to) moments.push_back(to);
  return moments;
}

}  // namespace

absl::StatusOr<BoxRows> FindBoxRows(Recording& recording, const ViewIndex& index, uint32_t lane,
                                    uint32_t from, uint32_t to, const Box& box) {
  if (!std::isfinite(box.low) || !std::isfinite(box.high) || box.low >= box.high) {
    return absl::InvalidArgumentError("`low` must lie below `high`");
  }
  auto moments = MomentsOf(index, lane, box.axis, from, to);
  if (!moments.ok()) return moments.status();
  BoxFinder finder(recording, index, lane, box, *std::move(moments));
  if (box.layout == Layout::kStacked) return finder.Stacked();
  absl::StatusOr<RowFilter> all = RowFilter::Make(recording, {});
  if (!all.ok()) return all.status();
  return finder.ByAddress(*all, from, to);
}

}  // namespace gmt::viewer
