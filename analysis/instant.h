// analysis/instant.h
//
// Which moment of a recording an answer speaks of: `--at peak|end|oom|t:SECONDS|snapshot:NAME`.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_INSTANT_H_
#define GMT_ANALYSIS_INSTANT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analysis/trace.h"

namespace gmt::analysis {

struct At {
  enum Kind { kPeak, kEnd, kOom, kTime, kSnapshot };
  Kind kind = kPeak;
  int64_t t_ns = 0;      // kTime
  std::string snapshot;  // kSnapshot
};

// INVALID_ARGUMENT with the accepted forms.
absl::StatusOr<At> ParseAt(absl::string_view text);

struct Instant {
  Step step = 0;
  int64_t t_ns = 0;
  std::string name;  // as the user would write it: "peak", "oom", "t:12.5", "snapshot:exit"
};

// The moment of every kind but kPeak, which differs from device to device (analysis/report.h).
// NOT_FOUND where the recording has no such snapshot or no failed allocation; the message lists
// what it has. Of several failed allocations the last counts: allocators retry after the first
// ones.
absl::StatusOr<Instant> Resolve(const At& at, const Trace& trace);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_INSTANT_H_
