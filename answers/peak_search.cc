#include "answers/peak_search.h"

#include <algorithm>
#include <utility>

#include "analysis/report/all_time.h"
#include "format/reading_plan.h"
#include "proto/gmt.pb.h"

namespace gmt::answers {
namespace {

// The reading plan adds an interval on both sides.
constexpr size_t kIntervalsAround = 2;

// Whether the checkpoint bounds what was allocated. It does not for regions, which may be memory
// that another heap counts, too.
bool HasBounds(const Aggregates& sums) {
  return std::all_of(sums.heaps().begin(), sums.heaps().end(), [](const HeapCounts& heap) {
    return heap.has_allocated_at_most() && (heap.heap() != "nvtx" || heap.allocations() == 0);
  });
}

// Whether what was read counts bytes as the collector does: nothing was lost, and blocks lie in
// memory of the driver.
bool CountsTheSame(const analysis::Examination& examination) {
  const analysis::Trace& trace = examination.trace();
  const Losses losses = trace.losses ? *trace.losses : Losses();
  if (losses.overrun() + losses.holes() + losses.abandoned() > 0) return false;
  if (trace.unknowns.gaps + trace.unknowns.frees_lost > 0) return false;
  const std::vector<analysis::RowKind>& kinds = examination.kinds().all();
  return std::none_of(kinds.begin(), kinds.end(), [](const analysis::RowKind& kind) {
    return kind.Has(analysis::kRowUnbacked);
  });
}

}  // namespace

absl::StatusOr<std::optional<PeakSearch>> PeakSearch::Begin(format::ByteSource& source,
                                                            uint64_t min_events,
                                                            std::optional<int32_t> device) {
  auto sums = format::ReadCheckpointSums(source);
  if (!sums.ok()) return sums.status();
  if (sums->empty() || sums->back()->events() < min_events) return std::nullopt;
  std::vector<Interval> intervals;
  for (const std::shared_ptr<const Aggregates>& checkpoint : *sums) {
    if (!HasBounds(*checkpoint)) return std::nullopt;
    Interval interval;
    if (!intervals.empty()) interval.from_ns = intervals.back().to_ns;
    interval.to_ns = checkpoint->t_ns();
    for (const HeapCounts& heap : checkpoint->heaps())
      interval.at_most[analysis::DeviceOf(heap)] += heap.allocated_at_most();
    intervals.push_back(std::move(interval));
  }
  return PeakSearch(std::move(intervals), sums->back(), device);
}

PeakSearch::PeakSearch(std::vector<Interval> intervals, std::shared_ptr<const Aggregates> sums,
                       std::optional<int32_t> device)
    : intervals_(std::move(intervals)), sums_(std::move(sums)) {
  uint64_t highest = 0;
  size_t interval = 0;
  for (size_t i = 0; i < intervals_.size(); ++i) {
    for (const auto& [candidate, bytes] : intervals_[i].at_most) {
      if ((device && candidate != *device) || bytes <= highest) continue;
      highest = bytes;
      device_ = candidate;
      interval = i;
    }
  }
  if (highest > 0) Include(interval);
}

void PeakSearch::Include(size_t interval) {
  first_ = std::min(first_, interval);
  last_ = std::max(last_, interval);
}

std::optional<format::TimeRange> PeakSearch::range() const {
  const size_t count = last_ - first_ + 1 + kIntervalsAround;
  if (gave_up_ || first_ > last_ || 2 * count > intervals_.size()) return std::nullopt;
  // Without the checkpoints themselves, which also belong to the intervals beside.
  const int64_t from_ns = intervals_[first_].from_ns;
  return format::TimeRange{from_ns == INT64_MIN ? from_ns : from_ns + 1,
                           intervals_[last_].to_ns - 1};
}

bool PeakSearch::Found(const analysis::Examination& examination, const format::TimeRange& read) {
  gave_up_ = !CountsTheSame(examination);
  if (gave_up_) return false;
  const auto& devices = examination.replay().devices();
  elsewhere_.clear();
  const size_t first = first_, last = last_;
  bool found = true;
  for (size_t i = 0; i < intervals_.size(); ++i) {
    const Interval& interval = intervals_[i];
    const bool is_before = interval.from_ns < read.from_ns;
    if (!is_before && interval.to_ns <= read.to_ns) continue;
    for (const auto& [device, at_most] : interval.at_most) {
      const auto known = devices.find(device);
      const uint64_t peak = known == devices.end() ? 0 : known->second.allocated.peak;
      // The first one counts if several peaks are equal.
      if (at_most < peak || at_most == 0 || (at_most == peak && !is_before)) continue;
      if (device != device_) {
        elsewhere_.insert(device);
        continue;
      }
      Include(i);
      found = false;
    }
  }
  // An interval that was to be read and was not, because its checkpoints have the same time.
  if (!found && first == first_ && last == last_) gave_up_ = true;
  return found;
}

}  // namespace gmt::answers
