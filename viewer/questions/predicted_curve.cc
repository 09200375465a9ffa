#include "viewer/questions/predicted_curve.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "analysis/whatif/allocator_history.h"

namespace gmt::viewer {
namespace {

using analysis::ReservedChange;
using analysis::ReservedCurve;

constexpr size_t kMaxReplays = 8;  // that are kept

// Returns the most that is reserved after the events of each column.
std::vector<double> MostByColumn(const ReservedCurve& curve, const ColumnPeaks& columns) {
  const std::vector<ReservedChange>& changes = curve.changes;
  std::vector<double> most(columns.event.size(), std::numeric_limits<double>::quiet_NaN());
  size_t next = 0;  // change
  uint64_t reserved = 0;
  for (size_t column = 0; column < most.size(); ++column) {
    if (!columns.is_known[column]) continue;
    for (; next < changes.size() && changes[next].step < columns.first[column]; ++next)
      reserved = changes[next].bytes;
    if (curve.first_failure && columns.first[column] > *curve.first_failure) break;
    uint64_t highest = next < changes.size() && changes[next].step == columns.first[column]
                           ? changes[next].bytes
                           : reserved;
    for (; next < changes.size() && changes[next].step <= columns.last[column]; ++next) {
      reserved = changes[next].bytes;
      highest = std::max(highest, reserved);
    }
    most[column] = static_cast<double>(highest);
  }
  return most;
}

}  // namespace

std::vector<absl::StatusOr<ReservedCurve>> PredictReserved(
    const analysis::Examination& examination, int32_t device,
    const std::vector<std::string>& settings) {
  std::vector<absl::StatusOr<ReservedCurve>> curves;
  const auto history = analysis::HistoryOf(examination, device);
  absl::Status status = history.status();
  if (status.ok() && !analysis::Reproduce(*history).is_good()) {
    status = absl::FailedPreconditionError(
        "no prediction: the replay of the recorded settings does not agree with the recording");
  }
  for (const std::string& text : settings) {
    if (!status.ok()) {
      curves.push_back(status);
      continue;
    }
    analysis::Scenario scenario{text, history->settings, std::nullopt};
    const absl::Status changed = scenario.settings.Change(text, history->torch);
    curves.push_back(changed.ok() ? analysis::SimulateCurve(*history, scenario)
                                  : absl::StatusOr<ReservedCurve>(changed));
  }
  return curves;
}

absl::StatusOr<PredictedCurve> Predictions::Curve(int32_t device, const std::string& settings,
                                                  const ColumnPeaks& columns) {
  const std::pair key(device, settings);
  if (replays_.size() >= kMaxReplays && !replays_.contains(key)) replays_.clear();
  auto replay = replays_.find(key);
  if (replay == replays_.end()) {
    replay =
        replays_.emplace(key, std::move(PredictReserved(examination_, device, {settings}).front()))
            .first;
  }
  if (!replay->second.ok()) return replay->second.status();
  const ReservedCurve& curve = *replay->second;
  return PredictedCurve{MostByColumn(curve, columns), curve.result.peak_reserved,
                        curve.result.retries, curve.first_failure};
}

}  // namespace gmt::viewer
