// analysis/loop/phase_spans.h
//
// When backward passes and optimizers ran, in births and deaths of memory. Taken from recorded
// ranges. For kinds of which a recording has no range (imported snapshots and logs), taken from the
// stacks of what was allocated (analysis/loop/stack_phases.h).
//
//   steps    1 2 3 4 5 6 7 8 9 ...
//   spans          |---| |-|         backward of pass 1; optimizer
//
// Spans are in order and do not overlap. An optimizer that runs inside a backward pass splits it
// into two spans of one pass. An optimizer that runs backward passes itself, in a closure, begins
// after the last of them. A span found by stacks ends with its last allocation; the frees after it
// are outside.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LOOP_PHASE_SPANS_H_
#define GMT_ANALYSIS_LOOP_PHASE_SPANS_H_

#include <cstdint>
#include <vector>

#include "analysis/loop/phases.h"
#include "analysis/loop/stack_phases.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

struct PhaseSpan {
  Step begin = 0, end = 0;         // covers steps begin+1..end; not empty
  Phase phase = Phase::kBackward;  // kBackward or kOptimizer; the others only from ForwardSpans
  uint32_t pass = 0;               // index of the backward or forward pass, from 0
};

struct PhaseSpans {
  std::vector<PhaseSpan> spans;
  // Whether the spans come from recorded ranges rather than from stacks.
  bool backward_is_recorded = false, optimizer_is_recorded = false;
  uint32_t passes = 0;
  // After which steps an optimizer ran that neither allocated nor freed: SGD, from its second step
  // on. In order.
  std::vector<Step> idle_optimizers;
};

PhaseSpans FindPhaseSpans(const Trace& trace, const format::Definitions& definitions);

// The forward passes of a loop's steps, each from its first allocation on: what is freed before
// that was left over by the previous pass. If the first step begins with the recording, kInit
// precedes the first pass: it ends at the first allocation by a stack that the second step has too.
// kEvaluation covers allocations by functions that evaluate a model: validation_step,
// evaluation_loop.
//
//   event   load load | x  h  y | ...backward... | free y | x  h  y | ...backward... | step
//           init      | forward |                         | forward |
std::vector<PhaseSpan> ForwardSpans(const Trace& trace, const format::Definitions& definitions,
                                    const Cycles& cycles, const PhaseSpans& spans);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_PHASE_SPANS_H_
