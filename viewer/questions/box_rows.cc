#include "viewer/questions/box_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "viewer/index/parallel_for.h"
#include "viewer/index/stack_heights.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

constexpr size_t kClasses = 64;               // how many classes of durations there are
constexpr uint32_t kEventsOfPart = 1u << 20;  // how many events a thread takes at a time

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
  BoxRows ByAddress(uint32_t from, uint32_t to) {
    const auto is_in_box = [&](RowId row) {
      const std::optional<double> place = index_.PlaceOf(row);
      if (!place) return false;
      const double end = *place + BytesOf(row);
      return *place < box_.high && end > box_.low;
    };
    std::vector<RowId> found;
    ForEachHeld(from, [&](RowId row) {
      if (is_in_box(row)) found.push_back(row);
    });
    ForEachBirth<std::vector<RowId>>(
        from, to,
        [&](RowId row, uint32_t, std::vector<RowId>& part) {
          if (is_in_box(row)) part.push_back(row);
        },
        [&](std::vector<RowId>& part) { found.insert(found.end(), part.begin(), part.end()); });
    for (const RowId row : found) {
      const auto first = std::lower_bound(moments_.begin(), moments_.end(), rows_.birth[row]);
      Take(row, Column(first), Column(DeathFrom(row, first)));
    }
    return Finish();
  }

 private:
  using Moment = std::vector<uint32_t>::const_iterator;

  using Candidates = std::array<std::vector<Candidate>, kClasses>;  // by class

  // Candidates are the blocks that are live after a moment. Those of a class are in order of birth.
  void FindCandidates() {
    ForEachHeld(moments_.front(),
                [&](RowId row) { AddCandidate(row, moments_.begin(), candidates_); });
    ForEachBirth<Candidates>(
        moments_.front(), moments_.back(),
        [this, moment = moments_.begin()](RowId row, uint32_t event, Candidates& part) mutable {
          while (*moment < event) ++moment;
          if (rows_.death[row] > *moment) AddCandidate(row, moment, part);
        },
        [&](Candidates& part) {
          for (size_t i = 0; i < kClasses; ++i) {
            candidates_[i].insert(candidates_[i].end(), part[i].begin(), part[i].end());
          }
        });
  }

  void AddCandidate(RowId row, Moment first, Candidates& candidates) const {
    const uint32_t birth = rows_.birth[row];
    const uint8_t duration = index_.DurationClassOf(box_.axis, birth, rows_.death[row]);
    candidates[duration].push_back(
        {row, birth, Column(first), Column(DeathFrom(row, first)), 0, BytesOf(row)});
  }

  // Calls visit(row) for the blocks of the lane that are live after an event, by birth.
  template <typename Visit>
  void ForEachHeld(uint32_t event, const Visit& visit) {
    for (const RowId row : recording_.held.After(event)) {
      if (recording_.IsIn(recording_.lanes[lane_], row) && rows_.HeldAfter(row, event)) visit(row);
    }
  }

  // Calls visit(row, event, part) for the births of the lane in (from, to] on all processors, with
  // one Part and one copy of `visit` for each part of the events, then collect(part) in order.
  template <typename Part, typename Visit, typename Collect>
  void ForEachBirth(uint32_t from, uint32_t to, const Visit& visit, const Collect& collect) const {
    std::vector<Part> parts((to - from) / kEventsOfPart + 1);
    std::vector<std::function<void()>> tasks;
    for (size_t i = 0; i < parts.size(); ++i) {
      const uint32_t begin = from + static_cast<uint32_t>(i) * kEventsOfPart;
      const uint32_t end = begin + std::min(kEventsOfPart, to - begin);
      tasks.push_back([this, begin, end, visit = Visit(visit), part = &parts[i]]() mutable {
        const LaneMemory lane = recording_.lanes[lane_];
        for (uint32_t event = begin + 1; event <= end; ++event) {
          const analysis::StepRecord record = recording_.trace().steps[event - 1];
          if (record.is_death || record.row == analysis::kNoRow) continue;
          if (rows_.birth[record.row] != event || !recording_.IsIn(lane, record.row)) continue;
          visit(record.row, event, *part);
        }
      });
    }
    ParallelFor(tasks, [](size_t) {});
    for (Part& part : parts) collect(part);
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
  Candidates candidates_;
  std::vector<uint64_t> changes_;  // how the bytes in the box change, by moment, modulo 2^64
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
  return finder.ByAddress(from, to);
}

}  // namespace gmt::viewer
