#include "viewer/questions/box_rows.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "viewer/index/duration_classes.h"
#include "viewer/index/packed_column.h"
#include "viewer/index/parallel_for.h"
#include "viewer/index/stack_heights.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

constexpr size_t kClasses = 64;  // how many classes of durations there are

using Candidates = std::array<std::vector<Candidate>, kClasses>;  // by class

// Whether rows are in a lane. Faster than Recording::IsIn() for rows in order, because long runs of
// them are in the same one.
class LaneRuns {
 public:
  LaneRuns(const Recording& recording, const LaneMemory& lane)
      : recording_(recording), lane_(lane) {}

  bool Contains(RowId row) {
    if (row < begin_ || row >= end_) {
      const analysis::Rows& rows = recording_.rows();
      begin_ = row;
      end_ = std::min(rows.heap.EndOfRun(row), rows.device.EndOfRun(row));
      is_in_ = recording_.IsIn(lane_, row);
    }
    return is_in_;
  }

 private:
  const Recording& recording_;
  const LaneMemory& lane_;
  size_t begin_ = 0, end_ = 0;
  bool is_in_ = false;
};

// Some of the box's moments, and the blocks that were born since the moment before them and are
// live after one of the box's moments.
struct Part {
  uint16_t begin = 0, end = 0;  // moments
  Candidates candidates;        // those of a class in order of birth
  // Those that are still live after the next part's first moment, by index.
  std::array<std::vector<uint32_t>, kClasses> later;
  std::vector<Candidate> found;  // candidates of this part, and of no `later`

  bool IsLater(const Candidate& block) const { return block.last > end; }
};

class BoxFinder {
 public:
  BoxFinder(Recording& recording, const ViewIndex& index, const BoxRange& range,
            std::vector<uint32_t> moments, uint32_t events_of_part)
      : recording_(recording),
        rows_(recording.rows()),
        index_(index),
        lane_(recording.lanes[range.lane]),
        range_(range),
        box_(range.box),
        events_of_part_(events_of_part),
        moments_(std::move(moments)),
        durations_(index, box_.axis, moments_.front(), moments_.back()) {}

  // Columns do not depend on each other: each part is stacked on its own, from its candidates and
  // what earlier parts left.
  BoxRows Stacked() {
    std::vector<Part> parts = MakeParts();
    ForEachHeld(moments_.front(),
                [&](RowId row) { AddCandidate(row, moments_.begin(), parts[0]); });
    InParallel(parts.size() - 1, [&](size_t i) { FindCandidates(parts[i + 1]); });
    InParallel(parts.size() - 1, [&](size_t i) { Stack(std::span(parts).first(i + 2)); });
    BoxRows found;
    Changes changes(moments_.size() + 1);
    const auto take = [&](const Candidate& block) {
      found.rows.push_back(block.row);
      Count(rows_.size[block.row], block.first, block.last, changes);
    };
    for (Part& part : parts) {
      for (const Candidate& block : part.found) take(block);
      for (size_t duration = 0; duration < kClasses; ++duration) {
        for (const uint32_t i : part.later[duration]) {
          const Candidate& block = part.candidates[duration][i];
          if (block.category != 0) take(block);
        }
      }
    }
    found.peak = PeakOf({&changes, 1});
    return found;
  }

  uint32_t ByAddress(BoxTaker& taker) {
    const uint32_t from = range_.from, to = range_.to;
    std::vector<Changes> parts((to - from) / events_of_part_ + 1, Changes(moments_.size() + 1));
    const std::vector<RowId> held = Held(from);
    for (const RowId row : held) Count(row, rows_.size[row], moments_.begin(), parts[0]);
    taker.Take(held);
    InParallel(parts.size(), [&](size_t i) {
      const uint32_t begin = from + static_cast<uint32_t>(i) * events_of_part_;
      const uint32_t end = begin + std::min(events_of_part_, to - begin);
      PackedColumnReader places(index_.places());
      LaneRuns lane(recording_, lane_);
      auto moment = std::lower_bound(moments_.begin(), moments_.end(), begin);
      std::array<RowId, 1024> rows;
      size_t count = 0;
      ForEachMaybeBorn(begin, end, [&](RowId row) {
        uint64_t bytes = 0;
        if (!IsInBox(row, places, &bytes) || !lane.Contains(row)) return;
        const uint32_t event = rows_.birth[row];
        if (event == 0) return;
        while (moment != moments_.end() && *moment < event) ++moment;
        Count(row, bytes, moment, parts[i]);
        rows[count++] = row;
        if (count == rows.size()) taker.Take(rows), count = 0;
      });
      taker.Take(std::span(rows).first(count));
    });
    return PeakOf(parts);
  }

  std::vector<RowId> Held(uint32_t event) {
    std::vector<RowId> held;
    PackedColumnReader places(index_.places());
    ForEachHeld(event, [&](RowId row) {
      uint64_t bytes = 0;
      if (IsInBox(row, places, &bytes)) held.push_back(row);
    });
    return held;
  }

 private:
  using Moment = std::vector<uint32_t>::const_iterator;

  // The first part has no moments; its candidates were born before all of them.
  std::vector<Part> MakeParts() const {
    std::vector<Part> parts(1);
    while (parts.back().end < moments_.size()) {
      Part part;
      part.begin = part.end = parts.back().end;
      const uint32_t first = moments_[part.begin];
      do {
        ++part.end;
      } while (part.end < moments_.size() && moments_[part.end] - first < events_of_part_);
      parts.push_back(std::move(part));
    }
    return parts;
  }

  void FindCandidates(Part& part) const {
    const uint32_t before = part.begin == 0 ? moments_.front() : moments_[part.begin - 1];
    auto moment = moments_.begin() + part.begin;
    ForEachBirth(before, moments_[part.end - 1], [&](RowId row, uint32_t event) {
      while (*moment < event) ++moment;
      if (rows_.death[row] <= *moment || !recording_.IsIn(lane_, row)) return;
      AddCandidate(row, moment, part);
    });
  }

  void AddCandidate(RowId row, Moment first, Part& part) const {
    const uint32_t birth = rows_.birth[row];
    const uint8_t duration = durations_.Of(birth, rows_.death[row]);
    std::vector<Candidate>& candidates = part.candidates[duration];
    candidates.push_back(
        {row, birth, Column(first), Column(DeathFrom(row, first)), 0, BytesOf(row)});
    if (part.IsLater(candidates.back())) {
      part.later[duration].push_back(static_cast<uint32_t>(candidates.size() - 1));
    }
  }

  // Stacks the columns of the last part. A block that lies in the box is put into `found` or, if
  // several parts have it, gets the category 1.
  void Stack(std::span<Part> parts) const {
    Part& own = parts.back();
    StackHeights heights(own.end - own.begin);
    // Does not read the category, which other threads may set.
    const auto is_seen = [&](const Candidate& whole) {
      const Candidate block = {whole.row,
                               whole.birth,
                               static_cast<uint16_t>(std::max(whole.first, own.begin) - own.begin),
                               static_cast<uint16_t>(std::min(whole.last, own.end) - own.begin),
                               0,
                               whole.bytes};
      const bool seen = heights.IsSeen(block, box_.low, box_.high);
      heights.Add(block);
      return seen;
    };
    const auto mark = [](Candidate& block) {
      std::atomic_ref(block.category).store(1, std::memory_order_relaxed);
    };
    for (size_t duration = kClasses; duration-- > 0;) {
      for (Part& earlier : parts.first(parts.size() - 1)) {
        for (const uint32_t i : earlier.later[duration]) {
          Candidate& block = earlier.candidates[duration][i];
          if (block.last <= own.begin) continue;
          if (heights.IsFullUpTo(box_.high)) return;
          if (is_seen(block)) mark(block);
        }
      }
      for (Candidate& block : own.candidates[duration]) {
        if (heights.IsFullUpTo(box_.high)) return;
        if (!is_seen(block)) continue;
        if (own.IsLater(block)) {
          mark(block);
        } else {
          own.found.push_back(block);
        }
      }
    }
  }

  // Calls visit(row) for the blocks of the lane that are live after an event, by birth.
  template <typename Visit>
  void ForEachHeld(uint32_t event, const Visit& visit) {
    for (const RowId row : recording_.held.After(event)) {
      if (recording_.IsIn(lane_, row) && rows_.HeldAfter(row, event)) visit(row);
    }
  }

  // Calls visit(row, event) for the births in (from, to], of any lane.
  template <typename Visit>
  void ForEachBirth(uint32_t from, uint32_t to, const Visit& visit) const {
    ForEachMaybeBorn(from, to, [&](RowId row) {
      if (const uint32_t event = rows_.birth[row]; event != 0) visit(row, event);
    });
  }

  // Calls visit(row) for what was born in (from, to], and perhaps for rows from before the
  // recording: only some visitors need to know the birth.
  template <typename Visit>
  void ForEachMaybeBorn(uint32_t from, uint32_t to, const Visit& visit) const {
    const analysis::Trace& trace = recording_.trace();
    const auto born_at = [&](uint32_t event) {
      const analysis::StepRecord record = trace.steps[event - 1];
      const bool is_birth = !record.is_death && record.row != analysis::kNoRow;
      return is_birth && rows_.birth[record.row] == event ? record.row : analysis::kNoRow;
    };
    if (!trace.rows_by_birth) {
      for (uint32_t event = from + 1; event <= to; ++event) {
        const RowId row = born_at(event);
        if (row != analysis::kNoRow) visit(row);
      }
      return;
    }
    while (from < to && born_at(from + 1) == analysis::kNoRow) ++from;
    while (from < to && born_at(to) == analysis::kNoRow) --to;
    if (from == to) return;
    for (RowId row = born_at(from + 1), last = born_at(to); row <= last; ++row) visit(row);
  }

  template <typename Run>
  static void InParallel(size_t count, const Run& run) {
    std::vector<std::function<void()>> tasks;
    for (size_t i = 0; i < count; ++i) tasks.emplace_back([&run, i] { run(i); });
    ParallelFor(tasks, [](size_t) {});
  }

  double BytesOf(RowId row) const { return static_cast<double>(rows_.size[row]); }
  // Most blocks are dead soon.
  Moment DeathFrom(RowId row, Moment first) const {
    const uint32_t death = rows_.death[row];
    for (int i = 0; i < 4; ++i, ++first) {
      if (first == moments_.end() || *first >= death) return first;
    }
    return std::lower_bound(first, moments_.end(), death);
  }
  uint16_t Column(Moment moment) const { return static_cast<uint16_t>(moment - moments_.begin()); }

  // By address, for a row of the lane. Sets `*bytes` to its size if it is in the box.
  bool IsInBox(RowId row, PackedColumnReader& places, uint64_t* bytes) const {
    const uint64_t place_plus_1 = places.At(row);
    const double place = static_cast<double>(place_plus_1) - 1;
    if (place_plus_1 == 0 || place >= box_.high) return false;
    *bytes = rows_.size[row];
    return place + static_cast<double>(*bytes) > box_.low;
  }

  // How the bytes in the box change, by moment, modulo 2^64.
  using Changes = std::vector<uint64_t>;

  static void Count(uint64_t bytes, uint16_t first, uint16_t last, Changes& changes) {
    changes[first] += bytes;
    changes[last] -= bytes;
  }
  void Count(RowId row, uint64_t bytes, Moment first, Changes& changes) const {
    Count(bytes, Column(first), Column(DeathFrom(row, first)), changes);
  }
  uint32_t PeakOf(std::span<const Changes> parts) const {
    uint64_t bytes = 0, most = 0;
    uint32_t peak = moments_.front();
    for (size_t i = 0; i < moments_.size(); ++i) {
      for (const Changes& changes : parts) bytes += changes[i];
      if (bytes > most) most = bytes, peak = moments_[i];
    }
    return peak;
  }

  Recording& recording_;
  const analysis::Rows& rows_;
  const ViewIndex& index_;
  const LaneMemory& lane_;
  const BoxRange& range_;
  const Box& box_;
  const uint32_t events_of_part_;
  const std::vector<uint32_t> moments_;
  const DurationClasses durations_;
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

absl::StatusOr<std::unique_ptr<BoxFinder>> MakeFinder(Recording& recording, const ViewIndex& index,
                                                      const BoxRange& range,
                                                      uint32_t events_of_part) {
  const Box& box = range.box;
  if (!std::isfinite(box.low) || !std::isfinite(box.high) || box.low >= box.high) {
    return absl::InvalidArgumentError("`low` must lie below `high`");
  }
  auto moments = MomentsOf(index, range.lane, box.axis, range.from, range.to);
  if (!moments.ok()) return moments.status();
  return std::make_unique<BoxFinder>(recording, index, range, *std::move(moments), events_of_part);
}

class BoxList : public BoxTaker {
 public:
  void Take(std::span<const RowId> taken) override {
    const std::lock_guard lock(mutex_);
    rows.insert(rows.end(), taken.begin(), taken.end());
  }

  std::vector<RowId> rows;

 private:
  std::mutex mutex_;
};

}  // namespace

absl::StatusOr<BoxRows> FindBoxRows(Recording& recording, const ViewIndex& index,
                                    const BoxRange& range, uint32_t events_of_part) {
  if (range.box.layout == Layout::kAddress) {
    BoxList list;
    const auto peak = TakeBoxRows(recording, index, range, list, events_of_part);
    if (!peak.ok()) return peak.status();
    std::sort(list.rows.begin(), list.rows.end());  // the same order each time
    return BoxRows{std::move(list.rows), *peak};
  }
  auto finder = MakeFinder(recording, index, range, events_of_part);
  if (!finder.ok()) return finder.status();
  return (*finder)->Stacked();
}

absl::StatusOr<uint32_t> TakeBoxRows(Recording& recording, const ViewIndex& index,
                                     const BoxRange& range, BoxTaker& taker,
                                     uint32_t events_of_part) {
  auto finder = MakeFinder(recording, index, range, events_of_part);
  if (!finder.ok()) return finder.status();
  return (*finder)->ByAddress(taker);
}

std::vector<RowId> HeldInBox(Recording& recording, const ViewIndex& index, const BoxRange& range,
                             uint32_t event) {
  return BoxFinder(recording, index, range, {range.to}, 1).Held(event);
}

}  // namespace gmt::viewer
