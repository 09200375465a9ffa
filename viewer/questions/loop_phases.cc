#include "viewer/questions/loop_phases.h"

#include <algorithm>

#include "analysis/loop/phase_spans.h"

namespace gmt::viewer {
using analysis::Phase;
using analysis::Step;

LoopPhases::LoopPhases(const analysis::Examination& examination) : cycles_(examination.cycles()) {
  const analysis::PhaseSpans& found = examination.phase_spans();
  for (const auto& spans :
       {ForwardSpans(examination.trace(), examination.definitions(), cycles_, found),
        found.spans}) {
    for (const analysis::PhaseSpan& span : spans)
      spans_.push_back({span.begin, span.end, span.phase});
  }
  std::sort(spans_.begin(), spans_.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
}

Phase LoopPhases::At(Step event) const {
  const auto found = std::lower_bound(spans_.begin(), spans_.end(), event,
                                      [](const Span& span, Step step) { return span.end < step; });
  return found != spans_.end() && found->begin < event ? found->phase : Phase::kOther;
}

std::optional<uint32_t> LoopPhases::StepAt(Step event) const {
  const auto found =
      std::lower_bound(cycles_.cycles.begin(), cycles_.cycles.end(), event,
                       [](const analysis::Cycle& cycle, Step step) { return cycle.end < step; });
  if (found == cycles_.cycles.end() || found->begin >= event) return std::nullopt;
  return static_cast<uint32_t>(found - cycles_.cycles.begin() + 1);
}

}  // namespace gmt::viewer
