#include "answers/frag/replays.h"

#include <utility>

#include "analysis/whatif/allocator_history.h"
#include "analysis/whatif/program_change.h"
#include "analysis/whatif/replay.h"

namespace gmt::answers {
namespace {

// Returns nullopt if a request has failed before the moment.
std::optional<Reserved> ReservedAt(analysis::Step step, const analysis::AllocatorHistory& history,
                                   bool expandable) {
  analysis::Scenario scenario{"", history.settings, std::nullopt};
  scenario.settings.expandable_segments |= expandable;
  const analysis::ReservedCurve curve = analysis::SimulateCurve(history, scenario);
  if (curve.first_failure && *curve.first_failure < step) return std::nullopt;
  return Reserved{curve.After(step), curve.result.peak_reserved};
}

FragReplays Replay(const analysis::Examination& examination, const analysis::Fragmentation& found) {
  const analysis::Step step = found.at.step;
  FragReplays replays;
  replays.varying = analysis::FindVaryingSites(examination, found.device, step);
  if (found.expandable_bytes == 0 && replays.varying.empty()) return replays;
  const auto history = analysis::HistoryOf(examination, found.device);
  if (!history.ok()) return replays;
  const analysis::Reproduction reproduction = analysis::Reproduce(*history);
  if (!reproduction.is_good()) return replays;
  replays.recorded_peak_bytes = reproduction.predicted_peak;
  if (found.expandable_bytes > 0) replays.expandable = ReservedAt(step, *history, true);
  if (!replays.varying.empty()) {
    analysis::ProgramChange change(examination.trace(), found.device);
    analysis::PadToLargest(replays.varying, change);
    const auto padded = ReservedAt(step, analysis::ChangedHistory(*history, change), false);
    if (padded) replays.padded = padded->bytes;
  }
  return replays;
}

}  // namespace

std::vector<DeviceFragmentation> ReplayEach(const analysis::Examination& examination,
                                            std::vector<analysis::Fragmentation> found) {
  std::vector<DeviceFragmentation> devices;
  for (analysis::Fragmentation& of : found) {
    FragReplays replays = Replay(examination, of);
    devices.push_back({std::move(of), std::move(replays)});
  }
  return devices;
}

}  // namespace gmt::answers
