// analysis/loop/cycle_anchor.h
//
// Infers the steps of a loop from recurring stacks if the recording does not report them.
//
//   Optimizers   Memory that an optimizer's step allocates comes in bursts, one per step. Of
//                several call sites the most frequent one is taken, and the latest of equally
//                frequent ones.
//   Anchors      A stack that allocates once per cycle, or in one burst, recurs at equal gaps,
//                counted in events (not in time, because programs wait). Such stacks with equal
//                periods that fire in turns are anchors of one loop; at least two independent ones
//                must agree. A cycle ends where an anchor fires while the held memory is near the
//                cycle's minimum. Within one call of a model, an optimizer or a backward pass
//                (analysis/loop/call_runs.h) only the first counts: the others are layers,
//                parameters and nodes.
//
//   event     a b c d d e . a b c d d e . a b c      a, b, c, d and e: period 7
//
// If loops are nested, the one with the most anchors is taken, or a shorter one with at least half
// as many: layers have fewer stacks than a step, and an interval between two evaluations has hardly
// more. If gradients are accumulated, a cycle may be one pass.
//
// Thread safety: pure functions. Cost: linear in steps; eight bytes per birth while they run.

#ifndef GMT_ANALYSIS_LOOP_CYCLE_ANCHOR_H_
#define GMT_ANALYSIS_LOOP_CYCLE_ANCHOR_H_

#include <string>
#include <vector>

#include "analysis/trace/row_kinds.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

struct InferredCycles {
  std::string source;      // "memory of Optimizer.step", "stack 7 and 31 others that recur"
  std::vector<Step> ends;  // ends of the cycles, in order; fewer than two if none were found
  // For anchors: a cycle ends before a birth of this stack that comes more than `burst_gap` steps
  // after the stack's previous birth.
  uint32_t stack = 0;
  Step burst_gap = 0;
};

InferredCycles CyclesOfOptimizers(const Trace& trace, const RowKinds& kinds,
                                  const format::Definitions& definitions);
InferredCycles CyclesOfAnchors(const Trace& trace, const RowKinds& kinds,
                               const format::Definitions& definitions);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_CYCLE_ANCHOR_H_
