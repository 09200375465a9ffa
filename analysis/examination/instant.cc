#include "analysis/examination/instant.h"

#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "analysis/examination/failures.h"
#include "analysis/examination/replay.h"

namespace gmt::analysis {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kMaxSeconds = 9e9;  // of an int64 of nanoseconds

// "1.5": all decimals without trailing zeros. REQUIRES: t_ns >= 0.
std::string SecondsText(int64_t t_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::string text = absl::StrFormat("%d.%09d", t_ns / kSecond, t_ns % kSecond);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

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

Instant PeakOn(const Examination& examination, int32_t device, PeakOf peak) {
  const auto& devices = examination.replay().devices();
  const auto found = devices.find(device);
  Step step = 0;
  if (found != devices.end()) {
    const DeviceTotals& totals = found->second;
    step = peak == PeakOf::kHeld ? totals.bytes.peak_step : totals.allocated.peak_step;
  }
  return {step, examination.trace().TimeOf(step), "peak"};
}

absl::StatusOr<Instant> ResolveCycle(const Examination& examination, uint64_t number,
                                     int32_t device) {
  const Cycles& cycles = examination.cycles();
  if (number == 0 || number > cycles.cycles.size()) {
    return absl::NotFoundError(
        cycles.cycles.empty()
            ? "the recording shows no steps of a loop; try --at peak or --at t:SECONDS"
            : absl::StrCat("there is no step ", number, "; the recording has steps 1 to ",
                           cycles.cycles.size()));
  }
  const size_t index = static_cast<size_t>(number - 1);
  Step step = cycles.cycles[index].end;
  for (const DeviceCycles& of : cycles.devices) {
    if (of.device == device) step = of.cycles[index].peak_step;
  }
  return Instant{step, examination.trace().TimeOf(step), absl::StrCat("step:", number)};
}

// If all failures were recovered, uses the last of them.
Instant FailureOf(const Examination& examination) {
  const std::vector<FailedAllocation>& failed = examination.trace().failed;
  const size_t index = FindFailures(examination).decisive.value_or(failed.size() - 1);
  return {failed[index].step, failed[index].t_ns, "oom"};
}

absl::StatusOr<Instant> ResolveEvent(uint64_t number, const Trace& trace) {
  if (number > trace.last_step()) {
    return absl::NotFoundError(absl::StrCat("there is no event ", number, "; the recording has ",
                                            trace.last_step(), " allocations and frees"));
  }
  const auto step = static_cast<Step>(number);
  return Instant{step, trace.TimeOf(step), absl::StrCat("event:", number)};
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
  if (absl::ConsumePrefix(&value, "step:") && absl::SimpleAtoi(value, &at.number) &&
      at.number > 0) {
    at.kind = At::kCycle;
    return at;
  }
  value = text;
  if (absl::ConsumePrefix(&value, "event:") && absl::SimpleAtoi(value, &at.number)) {
    at.kind = At::kEvent;
    return at;
  }
  value = text;
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
      "'", text,
      "' names no moment; write peak, end, oom, step:N, event:N, t:SECONDS or snapshot:NAME"));
}

absl::StatusOr<Instant> InstantOn(const Examination& examination, const At& at, int32_t device,
                                  PeakOf peak) {
  const Trace& trace = examination.trace();
  switch (at.kind) {
    case At::kPeak:
      return PeakOn(examination, device, peak);
    case At::kEnd:
      return Instant{trace.last_step(), trace.end_t_ns, "end"};
    case At::kCycle:
      return ResolveCycle(examination, at.number, device);
    case At::kEvent:
      return ResolveEvent(at.number, trace);
    case At::kTime:
      return Instant{StepAt(trace, at.t_ns), at.t_ns, absl::StrCat("t:", SecondsText(at.t_ns))};
    case At::kSnapshot:
      return ResolveSnapshot(at.snapshot, trace);
    case At::kOom:
      if (trace.failed.empty()) {
        return absl::NotFoundError("no allocation failed in this recording; try --at peak");
      }
      return FailureOf(examination);
  }
  return absl::InternalError("unknown moment");
}

}  // namespace gmt::analysis
