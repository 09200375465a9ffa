// Measures how often `oom` is right, on generated programs that run out of memory for a known
// reason.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/examination/failures.h"
#include "analysis/leaks/leaks.h"
#include "analysis/oom/oom.h"
#include "tests/evaluate/evaluation.h"
#include "tests/evaluate/oom/oom_cases.h"

namespace gmt::evaluate {
namespace {

using analysis::OomEvidence;
using analysis::OomReport;
using analysis::OomVerdict;

OomReport Explain(const analysis::Examination& examination) {
  const analysis::Failures failures = analysis::FindFailures(examination);
  const analysis::LeakReport leaks =
      failures.decisive ? analysis::FindLeaksUntilFailure(
                              examination, examination.trace().failed[*failures.decisive].t_ns)
                        : analysis::FindLeaks(examination);
  return analysis::ExplainOom(examination, analysis::Categorize(examination), leaks);
}

// O2: the parts add up to the device's use according to the ledger.
bool AddsUp(const OomReport& report, const analysis::Examination& examination) {
  if (report.verdict == OomVerdict::kNone) return true;
  const OomEvidence& evidence = report.evidence;
  const analysis::Ledger ledger =
      analysis::LedgerAt(examination, report.device, {report.step, report.t_ns, "oom"});
  const uint64_t sum = evidence.live_bytes + evidence.free_bytes + evidence.outside_bytes +
                       evidence.other_processes_bytes + evidence.not_apart_bytes +
                       evidence.system_bytes + static_cast<uint64_t>(evidence.unexplained_bytes);
  return sum == ledger.driver_used_bytes;
}

uint64_t CauseBytes(const OomReport& report) {
  const OomEvidence& evidence = report.evidence;
  switch (report.verdict) {
    case OomVerdict::kFragmentation:
      return evidence.split.pinned + evidence.split.stream + evidence.split.releasable;
    case OomVerdict::kLeak:
      return evidence.leaked_bytes;
    case OomVerdict::kOtherProcess:
      return evidence.others_bytes();
    case OomVerdict::kStreamDeferred:
      return evidence.split.awaiting_stream;
    case OomVerdict::kPrivatePool:
      return report.causes.empty() ? 0 : report.causes.front().bytes;
    case OomVerdict::kOutside:
      return report.causes.empty() ? 0 : report.causes.front().bytes;
    default:
      return 0;
  }
}

// Returns whether the bytes are right within 10 % and 700 MiB: some causes include contexts and
// changes between two samples.
bool IsNear(uint64_t found, uint64_t truth) {
  const uint64_t apart = found > truth ? found - truth : truth - found;
  return apart <= truth / 10 + (uint64_t{700} << 20);
}

}  // namespace
}  // namespace gmt::evaluate

int main(int argc, char** argv) {
  using namespace gmt::evaluate;
  Evaluation evaluation({.name = "oom", .title = "Out of memory", .seeds = 400, .quick_seeds = 10},
                        argc, argv);
  std::map<OomVerdict, Rate> verdicts;
  std::map<std::string, Rate> kinds;
  Rate sums, bytes;
  for (const uint64_t seed : evaluation.seeds()) {
    gmt::analysis::EventScript script;
    const OomCase made = MakeOomCase(seed, script);
    const gmt::analysis::Trace trace = script.Build();
    const gmt::analysis::Examination examination(trace, script.definitions());
    const OomReport report = Explain(examination);
    const bool right = report.verdict == made.truth;
    verdicts[made.truth].Add(right);
    kinds[std::string(NameOf(made.truth)) + ": " + made.kind].Add(right);
    sums.Add(AddsUp(report, examination));
    if (right && made.cause_bytes > 0) bytes.Add(IsNear(CauseBytes(report), made.cause_bytes));
    if (!right || (made.cause_bytes > 0 && !IsNear(CauseBytes(report), made.cause_bytes))) {
      const auto& e = report.evidence;
      evaluation.Missed(
          seed,
          fmt::format("{} ({}) reported as {}; MiB: needed {} of {}, live {} free {} largest {} "
                      "outside {} others {} not apart {} unexplained {} leaked {} driver {} "
                      "limit {}; split {} {} {} {} {}; cause {} true {}",
                      NameOf(made.truth), made.kind, NameOf(report.verdict), e.needed_bytes >> 20,
                      e.total_bytes >> 20, e.live_bytes >> 20, e.free_bytes >> 20,
                      e.largest_free_bytes >> 20, e.outside_bytes >> 20,
                      e.other_processes_bytes >> 20, e.not_apart_bytes >> 20,
                      e.unexplained_bytes / (1 << 20), e.leaked_bytes >> 20,
                      e.driver_free_bytes.value_or(0) >> 20, e.limit_bytes.value_or(0) >> 20,
                      e.split.pinned >> 20, e.split.stream >> 20, e.split.releasable >> 20,
                      e.split.private_pool >> 20, e.split.awaiting_stream >> 20,
                      CauseBytes(report) >> 20, made.cause_bytes >> 20));
    }
  }
  evaluation.Text(
      "Generated programs on a model of PyTorch's allocator and of a device of 16 to 80 GiB, with "
      "and without NVML, that fail for a planted reason.");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [kind, rate] : kinds) rows.push_back({kind, rate.text()});
  evaluation.Table({"class: scenario", "right"}, rows);
  for (const auto& [verdict, rate] : verdicts) {
    evaluation.AtLeast(std::string(NameOf(verdict)), rate, 0.95);
  }
  evaluation.AtLeast("bytes of the cause, within a tenth", bytes, 0.95);
  evaluation.Holds("the parts add up to the device's use", sums.right == sums.all);
  return evaluation.Finish();
}
