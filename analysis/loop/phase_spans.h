// analysis/loop/phase_spans.h
//
// When backward passes and optimizers ran, in births and deaths of memory: by the ranges that were
// recorded; where a recording has none of a kind, as imported snapshots and logs, by the stacks of
// what was allocated meanwhile (analysis/loop/stack_phases.h).
//
//   steps    1 2 3 4 5 6 7 8 9 ...
//   spans          |---| |-|         backward of pass 1; optimizer
//
// Spans are in order and do not overlap. An optimizer that runs inside a backward pass cuts it in
// two spans of one pass. One that runs backward passes itself, in a closure, begins behind the last of
// them. Found by stacks, a span ends with its last allocation: the frees behind it
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
  Step begin = 0, end = 0;         // what happened in it: begin+1..end; not empty
  Phase phase = Phase::kBackward;  // kBackward or kOptimizer; of ForwardSpans the others
  uint32_t pass = 0;               // of a backward or a forward pass: which, from 0
};

struct PhaseSpans {
  std::vector<PhaseSpan> spans;
  // Whether the recording's ranges told, not its stacks.
  bool backward_told = false, optimizer_told = false;
  uint32_t passes = 0;
};

PhaseSpans FindPhaseSpans(const Trace& trace, const format::Definitions& definitions,
                          StackPhases& stacks);

// The forward passes of a loop's steps, each from its first allocation on: what is freed before it was
// left over by the pass before. Before the first of them kInit, if the first step begins with the
// recording: up to the first allocation by a stack that the second step has too. kEvaluation is what
// functions allocate that evaluate a model: validation_step, evaluation_loop.
//
//   event   load load | x  h  y | ...backward... | free y | x  h  y | ...backward... | step
//           init      | forward |                         | forward |
std::vector<PhaseSpan> ForwardSpans(const Trace& trace, const format::Definitions& definitions,
                                    const Cycles& cycles, const PhaseSpans& spans);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_PHASE_SPANS_H_
