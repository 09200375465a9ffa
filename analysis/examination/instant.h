// analysis/examination/instant.h
//
// The moment of a recording that an answer is about:
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
  uint64_t number = 0;   // kCycle: number of the training loop's step, from 1; kEvent: count of
                         // births and deaths
  int64_t t_ns = 0;      // kTime
  std::string snapshot;  // kSnapshot
};

// Returns INVALID_ARGUMENT with the accepted forms.
absl::StatusOr<At> ParseAt(absl::string_view text);

struct Instant {
  Step step = 0;
  int64_t t_ns = 0;
  std::string name;  // as the user would write it: "peak", "step:12", "snapshot:exit"
};

// What peaks: the allocated bytes, or those plus what allocators keep.
enum class PeakOf : uint8_t { kAllocated, kHeld };

// Returns the instant on a device; of a step, the moment when the device held most. Returns
// NOT_FOUND if the recording has no such snapshot, step, event or failed allocation; the message
// lists what it has. Of several failed allocations the last unrecovered one counts
// (analysis/examination/failures.h).
absl::StatusOr<Instant> InstantOn(const Examination& examination, const At& at, int32_t device,
                                  PeakOf peak = PeakOf::kAllocated);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_INSTANT_H_
