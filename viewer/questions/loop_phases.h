// viewer/questions/loop_phases.h
//
// LoopPhases: the phases of a training loop (analysis/loop/phases.h) as spans of events, and the
// phase of an event. Spans are ordered and do not overlap; between them the phase is "other".
//
// Thread safety: const methods from any thread. Cost: that of FindPhaseSpans.

#ifndef GMT_VIEWER_QUESTIONS_LOOP_PHASES_H_
#define GMT_VIEWER_QUESTIONS_LOOP_PHASES_H_

#include <optional>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/loop/phases.h"

namespace gmt::viewer {

class LoopPhases {
 public:
  struct Span {
    analysis::Step begin = 0, end = 0;  // contains the events begin+1..end
    analysis::Phase phase = analysis::Phase::kOther;
  };

  explicit LoopPhases(const analysis::Examination& examination);

  const std::vector<Span>& spans() const { return spans_; }
  analysis::Phase At(analysis::Step event) const;
  // Returns the step of the loop, from 1; nullopt outside of steps.
  std::optional<uint32_t> StepAt(analysis::Step event) const;

 private:
  const analysis::Cycles& cycles_;
  std::vector<Span> spans_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_LOOP_PHASES_H_
