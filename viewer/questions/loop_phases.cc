#include "viewer/questions/loop_phases.h"

#include <algorithm>

#include "analysis/phase_spans.h"
#include "analysis/stack_phases.h"

namespace gmt::viewer {
namespace {

using analysis::Phase;
using analysis::Step;

// Adds [begin, end) as far as no told span lies in it.
void AddBetween(Step begin, Step end, const std::vector<analysis::PhaseSpan>& told,
                std::vector<LoopPhases::Span>& spans) {
  auto next =
      std::lower_bound(told.begin(), told.end(), begin,
                       [](const analysis::PhaseSpan& span, Step step) { return span.end <= step; });
  for (; begin < end; ++next) {
    const Step until = next == told.end() ? end : std::min(end, next->begin);
    if (begin < until) spans.push_back({begin, until, Phase::kForward});
    if (next == told.end()) return;
    begin = std::max(begin, next->end);
  }
}

}  // namespace

LoopPhases::LoopPhases(const analysis::Examination& examination) : cycles_(examination.cycles()) {
  analysis::StackPhases stacks(examination.definitions());
  const analysis::PhaseSpans found =
      FindPhaseSpans(examination.trace(), examination.definitions(), stacks);
  for (const analysis::PhaseSpan& span : found.spans) {
    spans_.push_back({span.begin, span.end, span.phase});
  }
  const std::vector<Step> backwards = BackwardBegins(found);
  for (const analysis::Cycle& cycle : cycles_.cycles) {
    AddBetween(cycle.begin, EndOfForward(cycle, backwards), found.spans, spans_);
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
