#include "analysis/whatif/replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <random>
#include <span>

#include "analysis/parallel.h"

namespace gmt::analysis {
namespace {

constexpr uint32_t kWorlds = 3;          // replays with delayed frees and other addresses
constexpr uint32_t kFreeDelay = 3;       // in requests, at most
constexpr uint32_t kCompleteDelay = 64;  // of a free that waits for other streams

// Delays some frees by a few requests, as other timing of the host and of streams would.
class Delays {
 public:
  // `seed` 0: no delays.
  explicit Delays(uint32_t seed) : is_on_(seed != 0), random_(seed) {}

  // Whether the request is to be done later.
  bool Postpone(uint32_t index, const AllocatorRequest& request) {
    if (!is_on_) return false;
    const bool is_complete = request.kind == AllocatorRequest::kComplete;
    if (!is_complete && (request.kind != AllocatorRequest::kFree || random_() % 4 != 0))
      return false;
    const uint32_t most = is_complete ? kCompleteDelay : kFreeDelay;
    DueAt(index + 1 + static_cast<uint32_t>(random_() % most)).push_back(index);
    return true;
  }
  // Calls visit(index) for those that are to be done before this request. REQUIRES: it was called
  // for all requests before.
  template <typename Visit>
  void ForEachDue(uint32_t index, Visit visit) {
    if (!is_on_) return;
    for (const uint32_t due : DueAt(index)) visit(due);
    DueAt(index).clear();
  }

 private:
  std::vector<uint32_t>& DueAt(uint32_t index) { return due_[index % due_.size()]; }

  const bool is_on_;
  std::mt19937 random_;
  std::array<std::vector<uint32_t>, std::max(kFreeDelay, kCompleteDelay) + 1> due_;
};

uint64_t CapacityOf(const AllocatorHistory& history, const Scenario& scenario) {
  return scenario.capacity.value_or(history.capacity.value_or(AllocatorSettings::kUnlimited));
}

// `seed`: of the addresses of segments; 0: those of the recording.
CachingAllocator AllocatorOf(const AllocatorHistory& history, const Scenario& scenario,
                             uint32_t seed) {
  CachingAllocator allocator(scenario.settings, history.device_bytes,
                             CapacityOf(history, scenario));
  if (seed == 0) {
    allocator.SetAddresses(history.segment_addresses);
  } else {
    allocator.ScatterAddresses(seed);
  }
  for (const StartSegment& start : history.start)
    allocator.AddSegment(start.place, start.is_small, start.is_expandable, start.pieces);
  return allocator;
}

// Returns false if an allocation fails.
bool Do(const AllocatorRequest& request, CachingAllocator& allocator) {
  switch (request.kind) {
    case AllocatorRequest::kAllocate:
      return allocator.Allocate(request.allocation, request.bytes, {request.stream, request.pool});
    case AllocatorRequest::kFailed:
      if (!allocator.Allocate(request.allocation, request.bytes, {request.stream, request.pool}))
        return false;
      allocator.Free(request.allocation);
      return true;
    case AllocatorRequest::kFree:
      allocator.Free(request.allocation);
      return true;
    case AllocatorRequest::kFreeWhenAwaited:
      allocator.FreeWhenAwaited(request.allocation);
      return true;
    case AllocatorRequest::kComplete:
      allocator.Complete(request.allocation);
      return true;
    case AllocatorRequest::kEmptyCache:
      allocator.EmptyCache();
      return true;
    case AllocatorRequest::kOutside:
      allocator.SetOutside(request.bytes);
      return true;
  }
  return true;
}

// Records what an allocator reserves, after each request.
class ReservedRecorder {
 public:
  ReservedRecorder(const CachingAllocator& allocator, std::vector<ReservedChange>* changes)
      : allocator_(allocator), changes_(changes) {
    if (changes_ != nullptr) changes_->push_back({0, allocator.reserved()});
  }

  void Record(Step step) {
    if (changes_ == nullptr) return;
    // A request may release what it has just reserved.
    if (allocator_.peak_reserved() > peak_) {
      peak_ = allocator_.peak_reserved();
      Add(step, peak_);
    }
    Add(step, allocator_.reserved());
  }

 private:
  void Add(Step step, uint64_t bytes) {
    if (bytes != changes_->back().bytes) changes_->push_back({step, bytes});
  }

  const CachingAllocator& allocator_;
  std::vector<ReservedChange>* const changes_;  // null: nothing is recorded
  uint64_t peak_ = 0;
};

struct RunOptions {
  uint32_t seed = 0;   // 0: no delays and the recorded addresses; otherwise both are random
  bool alone = false;  // the capacity is for the allocator only, whatever the process has beside it
  std::vector<ReservedChange>* changes = nullptr;
  uint64_t most_reserved = AllocatorSettings::kUnlimited;  // the run ends when more is reserved
};

struct RunResult : ScenarioResult {
  bool was_refused = false;  // the capacity was used up at some time
};

std::optional<uint64_t> DriverNs(const CachingAllocator& allocator, const AllocatorHistory& history,
                                 const Scenario& scenario) {
  const DriverCosts& costs = history.costs;
  const bool is_expandable = scenario.settings.expandable_segments;
  double ns = 0;
  for (const auto& [calls, cost] :
       {std::pair(allocator.allocations(), is_expandable ? costs.map_ns : costs.allocate_ns),
        std::pair(allocator.releases(), is_expandable ? costs.unmap_ns : costs.release_ns)}) {
    if (calls > 0 && !cost) return std::nullopt;
    ns += static_cast<double>(calls) * cost.value_or(0);
  }
  return static_cast<uint64_t>(ns);
}

RunResult Run(const AllocatorHistory& history, const Scenario& scenario,
              const RunOptions& options = {}) {
  CachingAllocator allocator = AllocatorOf(history, scenario, options.seed);
  ReservedRecorder recorder(allocator, options.changes);
  Delays delays(options.seed);
  RunResult result;
  const auto count = static_cast<uint32_t>(history.requests.size());
  for (uint32_t i = 0; i < count; ++i) {
    delays.ForEachDue(i, [&](uint32_t due) { Do(history.requests[due], allocator); });
    const AllocatorRequest& request = history.requests[i];
    if (options.alone && request.kind == AllocatorRequest::kOutside) continue;
    const bool is_done = delays.Postpone(i, request) || Do(request, allocator);
    recorder.Record(request.step);
    if (allocator.reserved() > options.most_reserved) break;
    if (is_done) continue;
    if (!result.first_failure) result.first_failure = i;
    // The program ends where the recorded one did not.
    if (request.kind == AllocatorRequest::kAllocate) break;
    allocator.ForgetCalls();
  }
  result.peak_reserved = allocator.peak_reserved();
  result.peak_allocated = allocator.peak_allocated();
  result.retries = allocator.retries();
  result.failures = allocator.failures();
  result.was_refused = allocator.was_refused();
  result.driver_calls = allocator.allocations() + allocator.releases();
  result.driver_ns = DriverNs(allocator, history, scenario);
  result.fails_later = scenario.step_needs > CapacityOf(history, scenario);
  return result;
}

// `unlimited`: the replay with these settings whose capacity was never used up.
Need NeedAfter(const AllocatorHistory& history, const AllocatorSettings& settings,
               const ScenarioResult& unlimited) {
  const auto runs_out = [&](uint64_t limit) {
    return Run(history, {"", settings, limit}, {.alone = true}).is_out_of_memory();
  };
  uint64_t fails = unlimited.peak_allocated, succeeds = unlimited.peak_reserved;
  if (fails >= succeeds || !runs_out(fails)) return {fails, fails};
  while (succeeds - fails > succeeds / 100) {
    const uint64_t limit = fails + (succeeds - fails) / 2;
    (runs_out(limit) ? fails : succeeds) = limit;
  }
  return {succeeds, unlimited.peak_allocated};
}

// Bytes that were allocated and released in one request. A page of an expandable segment is an
// event of its own in some recordings; others have one event for all that one request needed.
struct Moved {
  uint64_t allocated = 0, released = 0;

  void Add(uint64_t bytes, bool is_release) { (is_release ? released : allocated) += bytes; }
  friend bool operator==(const Moved&, const Moved&) = default;
};

}  // namespace

bool Reproduction::is_good() const {
  return reproduced * 100 >= segment_events * 99 && std::abs(peak_error) <= 0.03;
}

Reproduction Reproduce(const AllocatorHistory& history) {
  CachingAllocator allocator = AllocatorOf(history, {"", history.settings, std::nullopt}, 0);
  Reproduction reproduction;
  reproduction.segment_events = history.segment_events.size();
  const std::span<const SegmentEvent> events = history.segment_events;
  size_t next = 0;
  for (uint32_t i = 0; i < history.requests.size(); ++i) {
    Do(history.requests[i], allocator);
    const size_t first = next;
    while (next < events.size() && events[next].request <= i) ++next;
    Moved recorded, replayed;
    for (size_t event = first; event < next; ++event)
      recorded.Add(events[event].bytes, events[event].is_release);
    for (const CachingAllocator::SegmentCall& call : allocator.calls())
      replayed.Add(call.bytes, call.is_release);
    if (recorded == replayed) reproduction.reproduced += next - first;
    allocator.ForgetCalls();
  }
  reproduction.predicted_peak = allocator.peak_reserved();
  if (history.peak_reserved > 0) {
    reproduction.peak_error = static_cast<double>(reproduction.predicted_peak) /
                                  static_cast<double>(history.peak_reserved) -
                              1;
  }
  return reproduction;
}

uint64_t ReservedCurve::After(Step step) const {
  const auto after =
      std::upper_bound(changes.begin(), changes.end(), step,
                       [](Step at, const ReservedChange& change) { return at < change.step; });
  return after == changes.begin() ? 0 : std::prev(after)->bytes;
}

ScenarioResult Simulate(const AllocatorHistory& history, const Scenario& scenario) {
  return Run(history, scenario);
}

ReservedCurve SimulateCurve(const AllocatorHistory& history, const Scenario& scenario) {
  ReservedCurve curve;
  curve.result = Run(history, scenario, {.changes = &curve.changes});
  if (curve.result.first_failure)
    curve.first_failure = history.requests[*curve.result.first_failure].step;
  return curve;
}

std::optional<uint64_t> PeakReserved(const AllocatorHistory& history,
                                     const AllocatorSettings& settings, uint64_t most) {
  const RunResult result = Run(history, {"", settings, AllocatorSettings::kUnlimited},
                               {.alone = true, .most_reserved = most});
  if (result.failures > 0 || result.peak_reserved > most) return std::nullopt;
  return result.peak_reserved;
}

uint64_t WorstReserved(const AllocatorHistory& history, const Scenario& scenario) {
  uint64_t worst = 0;
  for (uint32_t seed = 0; seed <= kWorlds; ++seed)
    worst = std::max(worst, Run(history, scenario, {.seed = seed}).peak_reserved);
  return worst;
}

bool Fits(const AllocatorHistory& history, const Scenario& scenario) {
  for (uint32_t seed = 0; seed <= kWorlds; ++seed) {
    if (Run(history, scenario, {.seed = seed}).is_out_of_memory()) return false;
  }
  return true;
}

Need NeedOf(const AllocatorHistory& history, const AllocatorSettings& settings) {
  return NeedAfter(history, settings,
                   Run(history, {"", settings, AllocatorSettings::kUnlimited}, {.alone = true}));
}

ScenarioResult Predict(const AllocatorHistory& recorded, const Scenario& scenario) {
  const AllocatorHistory& history = scenario.changed ? *scenario.changed : recorded;
  RunResult result = Run(history, scenario);
  const Need need = result.was_refused ? NeedOf(history, scenario.settings)
                                       : NeedAfter(history, scenario.settings, result);
  result.low = std::min(result.peak_allocated, result.peak_reserved);
  result.least_reserved = need.least_reserved;
  result.high = result.peak_reserved;
  for (uint32_t seed = 1; seed <= kWorlds; ++seed)
    result.high = std::max(result.high, Run(history, scenario, {.seed = seed}).peak_reserved);
  return result;
}

std::vector<ScenarioResult> PredictAll(const AllocatorHistory& history,
                                       const std::vector<Scenario>& scenarios) {
  std::vector<ScenarioResult> results(scenarios.size());
  ForEachInParallel(scenarios.size(),
                    [&](size_t i) { results[i] = Predict(history, scenarios[i]); });
  return results;
}

}  // namespace gmt::analysis
