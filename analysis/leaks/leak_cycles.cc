#include "analysis/leaks/leak_cycles.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "analysis/loop/call_runs.h"
#include "analysis/median.h"

namespace gmt::analysis {
namespace {

constexpr size_t kEpochs = 200;
constexpr Step kMinEventsOfEpoch = 20;
constexpr uint64_t kLifetimesOfEpoch = 50;
constexpr size_t kLowWaterStretches = 20;  // searched for low water separately

bool Counts(const Rows& rows, RowId row) {
  return !rows.IsRegion(row) && rows.heap[row] != kHostHeap &&
         (rows.flags[row] & kRowHoldsBlocks) == 0;
}

// Bytes held after each step, on all devices together.
std::vector<uint64_t> HeldByStep(const Trace& trace) {
  std::vector<uint64_t> held;
  held.reserve(trace.steps.size());
  uint64_t live = 0;
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    if (trace.rows.birth[row] == 0 && Counts(trace.rows, row)) live += trace.rows.size[row];
  }
  for (const StepRecord record : trace.steps) {
    if (record.row != kNoRow && Counts(trace.rows, record.row)) {
      const uint64_t size = trace.rows.size[record.row];
      live += record.is_death ? -size : size;
    }
    held.push_back(live);
  }
  return held;
}

// Reports whether runs of births have begun since the previous query.
class RunsSince {
 public:
  explicit RunsSince(const std::vector<Step>& begins) : begins_(begins) {}
  bool BeginUpTo(Step step) {
    const size_t before = next_;
    while (next_ < begins_.size() && begins_[next_] <= step) ++next_;
    return next_ > before;
  }

 private:
  const std::vector<Step>& begins_;
  size_t next_ = 0;
};

Cycle Between(const Trace& trace, Step begin, Step end) {
  return {begin, end, trace.TimeOf(begin), trace.TimeOf(end)};
}

}  // namespace

// A server holds least between two requests. So a cycle ends where the level, after it was high,
// drops to about the minimum of its stretch of the recording.
std::vector<Cycle> LowWaters(const Trace& trace, const std::vector<Step>& begins_of_runs) {
  const std::vector<uint64_t> held = HeldByStep(trace);
  std::vector<Cycle> cycles;
  Step begin = 0;
  bool was_high = false;
  RunsSince runs(begins_of_runs);
  for (size_t stretch = 0; stretch < kLowWaterStretches; ++stretch) {
    const size_t from = held.size() * stretch / kLowWaterStretches;
    const size_t to = held.size() * (stretch + 1) / kLowWaterStretches;
    if (from == to) continue;
    const auto [least, most] = std::minmax_element(held.begin() + static_cast<std::ptrdiff_t>(from),
                                                   held.begin() + static_cast<std::ptrdiff_t>(to));
    const auto range = static_cast<double>(*most - *least);
    const double low = static_cast<double>(*least) + kLowShare * range;
    const double high = static_cast<double>(*least) + kHighShare * range;
    for (size_t i = from; i < to; ++i) {
      const auto now = static_cast<double>(held[i]);
      was_high |= now >= high;
      if (!was_high || now > low) continue;
      const auto end = static_cast<Step>(i + 1);
      if (!runs.BeginUpTo(end)) continue;
      cycles.push_back(Between(trace, begin, end));
      begin = end;
      was_high = false;
    }
  }
  return cycles;
}

std::vector<Cycle> EqualParts(const Trace& trace, const std::vector<Step>& begins_of_runs) {
  std::vector<Step> lifetimes;
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    if (Counts(trace.rows, row) && trace.rows.birth[row] > 0 && trace.rows.death[row] != kNever)
      lifetimes.push_back(trace.rows.death[row] - trace.rows.birth[row]);
  }
  uint64_t length = std::max<uint64_t>(kMinEventsOfEpoch, trace.last_step() / kEpochs);
  length = std::max(length, kLifetimesOfEpoch * UpperMedian(std::move(lifetimes)));
  // With fewer calls than parts, calls are not spread over all parts.
  if (begins_of_runs.size() < trace.last_step() / length) return {};
  std::vector<Cycle> cycles;
  for (uint64_t end = length; end <= trace.last_step(); end += length)
    cycles.push_back(Between(trace, static_cast<Step>(end - length), static_cast<Step>(end)));
  return cycles;
}

LeakCycles CyclesForLeaks(const Examination& examination, Window window) {
  const Cycles& found = examination.cycles();
  LeakCycles chosen{found.source, found.cycles, found.inferred, true};
  if (chosen.cycles.empty()) {
    const std::vector<Step> begins =
        BeginsOfCallRuns(examination.trace(), examination.kinds(), examination.definitions());
    chosen.cycles = LowWaters(examination.trace(), begins);
    chosen.source = "low-water marks";
    chosen.inferred = true;
    if (chosen.cycles.size() < kMinLowWaters) {
      chosen.cycles = EqualParts(examination.trace(), begins);
      chosen.source = chosen.cycles.empty() ? "" : "equal parts";
      chosen.clear = false;
    }
  }
  std::erase_if(chosen.cycles, [&](const Cycle& cycle) {
    return cycle.begin_t_ns < window.from_ns || cycle.end_t_ns > window.to_ns;
  });
  return chosen;
}

}  // namespace gmt::analysis
