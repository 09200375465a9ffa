#include "answers/frag/expandable.h"

#include "analysis/whatif/allocator_history.h"
#include "analysis/whatif/replay.h"

namespace gmt::answers {

std::optional<Expandable> ReservedIfExpandable(const analysis::Examination& examination,
                                               const analysis::Fragmentation& found) {
  if (found.expandable_bytes == 0) return std::nullopt;
  const auto history = analysis::HistoryOf(examination, found.device);
  if (!history.ok()) return std::nullopt;
  const analysis::Reproduction reproduction = analysis::Reproduce(*history);
  if (!reproduction.is_good()) return std::nullopt;
  analysis::Scenario scenario{"", history->settings, std::nullopt};
  scenario.settings.expandable_segments = true;
  const analysis::ReservedCurve curve = analysis::SimulateCurve(*history, scenario);
  if (curve.first_failure && *curve.first_failure < found.at.step) return std::nullopt;
  return Expandable{curve.After(found.at.step), curve.result.peak_reserved,
                    reproduction.predicted_peak};
}

}  // namespace gmt::answers
