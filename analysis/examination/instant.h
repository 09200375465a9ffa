// analysis/examination/instant.h
//
// Which moment of a recording an answer speaks of:
// `--at peak|end|oom|step:N|event:N|t:SECONDS|snapshot:NAME`.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_EXAMINATION_INSTANT_H_
#define GMT_ANALYSIS_EXAMINATION_INSTANT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analysis/examination/examination.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct At {
  enum Kind { kPeak, kEnd, kOom, kCycle, kEvent, kTime, kSnapshot };
  Kind kind = kPeak;
  uint64_t number = 0;   // kCycle: of the training loop's steps, from 1; kEvent: births and deaths
  int64_t t_ns = 0;      // kTime
  std::string snapshot;  // kSnapshot
};

// INVALID_ARGUMENT with the accepted forms.
absl::StatusOr<At> ParseAt(absl::string_view text);

struct Instant {
  Step step = 0;
  int64_t t_ns = 0;
  std::string name;  // as the user would write it: "peak", "step:12", "snapshot:exit"
};

// What a device had most of at its peak: what was allocated, or that and what allocators kept.
enum class PeakOf : uint8_t { kAllocated, kHeld };

// The moment on a device: of a step, when the device held most. NOT_FOUND where the
// recording has no such snapshot, step or event or no failed allocation; the message lists what it
// has. Of several failed allocations the last that was not mended counts (analysis/examination/failures.h).
absl::StatusOr<Instant> InstantOn(const Examination& examination, const At& at, int32_t device,
                                  PeakOf peak = PeakOf::kAllocated);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_INSTANT_H_
