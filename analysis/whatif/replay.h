// analysis/whatif/replay.h
//
// Replays a recorded history through the model of PyTorch's allocator (caching_allocator.h), with
// the recorded settings or others.
//
//   recorded settings   must lead to the recorded segments; otherwise no prediction is made
//   other settings      peak of reserved memory, retries, whether a request fails
//
//   ideal <= least <= predicted <= worst
//     ideal      the peak of the blocks alone, packed without gaps
//     least      with less reserved memory than this, a request would fail
//     predicted  reserved at the peak, if the device does not run full
//     worst      of replays in which frees come somewhat later and segments have other addresses
//
// Assumed unchanged: which requests the program makes and when. If a request that failed in the
// recording succeeds in a replay, what the program would have requested next is not known, but
// perhaps how much in all (Scenario::step_needs).
//
// Thread safety: pure functions. Cost: O(requests x log free blocks) each.

#ifndef GMT_ANALYSIS_WHATIF_REPLAY_H_
#define GMT_ANALYSIS_WHATIF_REPLAY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/whatif/allocator_history.h"
#include "analysis/whatif/allocator_settings.h"

namespace gmt::analysis {

struct Scenario {
  std::string name;
  AllocatorSettings settings;
  std::optional<uint64_t> capacity;  // nullopt: as recorded
  // The requests of a changed program (program_change.h); null: as recorded.
  std::shared_ptr<const AllocatorHistory> changed = nullptr;
  // If the program failed: what its last step needs of the capacity, with what it had not requested
  // yet; 0: unknown.
  uint64_t step_needs = 0;
};

struct ScenarioResult {
  uint64_t peak_reserved = 0;
  uint64_t peak_allocated = 0;  // in blocks
  uint64_t low = 0, high = 0;   // between which the peak of reserved memory is expected
  uint64_t least_reserved = 0;  // Need
  uint64_t retries = 0;
  // Calls with which the driver provided or took back a segment, or a page of an expandable one.
  uint64_t driver_calls = 0;
  // How long they take at the recorded cost of such calls (DriverCosts); nullopt: none is recorded.
  std::optional<uint64_t> driver_ns;
  uint64_t failures = 0;                  // requests that failed
  std::optional<uint32_t> first_failure;  // index of its request
  bool fails_later = false;               // Scenario::step_needs is more than the capacity
  bool is_out_of_memory() const { return failures > 0 || fails_later; }
};

// `bytes` are reserved from a step of the recording on.
struct ReservedChange {
  Step step = 0;
  uint64_t bytes = 0;

  friend bool operator==(const ReservedChange&, const ReservedChange&) = default;
};

struct ReservedCurve {
  // In order, the first one at step 0; several may be at one step. Their maximum is
  // `result.peak_reserved`.
  std::vector<ReservedChange> changes;
  ScenarioResult result;              // as Simulate() returns it
  std::optional<Step> first_failure;  // the step of its request; nothing is known after it

  // What is reserved after a step.
  uint64_t After(Step step) const;
};

// How well a replay with the recorded settings agrees with the recording.
struct Reproduction {
  uint64_t segment_events = 0;  // recorded
  uint64_t reproduced = 0;      // in requests that move the same bytes in the replay
  double peak_error = 0;        // of reserved memory, relative
  uint64_t predicted_peak = 0;

  // 99 % of the segment events, the peak within 3 %.
  bool is_good() const;
};

// Replays once, without delays: `low`, `high` and `least_reserved` are not set.
ScenarioResult Simulate(const AllocatorHistory& history, const Scenario& scenario);
// The same, with what is reserved over time.
ReservedCurve SimulateCurve(const AllocatorHistory& history, const Scenario& scenario);
// The peak of reserved memory without a limit; nullopt if it is above `most`, or if a request fails
// because of the settings. Stops as soon as that is known.
std::optional<uint64_t> PeakReserved(const AllocatorHistory& history,
                                     const AllocatorSettings& settings,
                                     uint64_t most = AllocatorSettings::kUnlimited);
// The highest peak of reserved memory of the replay as recorded and of those with frees somewhat
// later and other addresses.
uint64_t WorstReserved(const AllocatorHistory& history, const Scenario& scenario);
// Whether no request fails in any of these replays, and a failed step could end.
bool Fits(const AllocatorHistory& history, const Scenario& scenario);
Reproduction Reproduce(const AllocatorHistory& history);
ScenarioResult Predict(const AllocatorHistory& history, const Scenario& scenario);
struct Need {
  // The limit on reserved memory with which all requests still succeed, those that failed in the
  // recording as well: found by bisection, 1 % too high at most.
  uint64_t least_reserved = 0;
  uint64_t peak_allocated = 0;  // in blocks
};
// Ignores the capacity, and what the process holds beside the allocator.
Need NeedOf(const AllocatorHistory& history, const AllocatorSettings& settings);
// The same for several, on all processors.
std::vector<ScenarioResult> PredictAll(const AllocatorHistory& history,
                                       const std::vector<Scenario>& scenarios);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_REPLAY_H_
