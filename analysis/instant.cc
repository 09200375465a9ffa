#include "analysis/instant.h"

#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "analysis/replay.h"

namespace gmt::analysis {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kMaxSeconds = 9e9;  // of an int64 of nanoseconds

absl::StatusOr<Instant> ResolveSnapshot(const std::string& name, const Trace& trace) {
  std::vector<std::string> names;
  for (const NamedInstant& known : trace.snapshots) {
    if (known.name == name) return Instant{known.step, known.t_ns, absl::StrCat("snapshot:", name)};
    names.push_back(known.name);
  }
  return absl::NotFoundError(
      absl::StrCat("no snapshot is called '", name, "'; ",
                   names.empty() ? "the recording has none"
                                 : absl::StrCat("there is: ", absl::StrJoin(names, ", "))));
}

}  // namespace

absl::StatusOr<At> ParseAt(absl::string_view text) {
  At at;
  if (text == "peak") return at;
  at.kind = At::kEnd;
  if (text == "end") return at;
  at.kind = At::kOom;
  if (text == "oom") return at;
  absl::string_view value = text;
  double seconds = 0;
  if (absl::ConsumePrefix(&value, "t:") && absl::SimpleAtod(value, &seconds) && seconds >= 0 &&
      seconds < kMaxSeconds) {
    at.kind = At::kTime;
    at.t_ns = static_cast<int64_t>(std::llround(seconds * kNsPerSecond));
    return at;
  }
  if (absl::ConsumePrefix(&value, "snapshot:") && !value.empty()) {
    at.kind = At::kSnapshot;
    at.snapshot = std::string(value);
    return at;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' names no moment; write peak, end, oom, t:SECONDS or snapshot:NAME"));
}

absl::StatusOr<Instant> Resolve(const At& at, const Trace& trace) {
  switch (at.kind) {
    case At::kPeak:
      return absl::InternalError("a peak belongs to a device");
    case At::kEnd:
      return Instant{trace.last_step(), trace.end_t_ns, "end"};
    case At::kTime:
      return Instant{StepAt(trace, at.t_ns), at.t_ns,
                     absl::StrCat("t:", static_cast<double>(at.t_ns) / kNsPerSecond)};
    case At::kSnapshot:
      return ResolveSnapshot(at.snapshot, trace);
    case At::kOom:
      if (trace.failed.empty()) {
        return absl::NotFoundError("no allocation failed in this recording; try --at peak");
      }
      return Instant{trace.failed.back().step, trace.failed.back().t_ns, "oom"};
  }
  return absl::InternalError("unknown moment");
}

}  // namespace gmt::analysis
