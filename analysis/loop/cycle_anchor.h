// analysis/loop/cycle_anchor.h
//
// The steps of a loop that nothing in the recording tells, found by stacks that recur.
//
//   Optimizers   Memory that an optimizer's step allocates comes in bursts, one a step. Of several call
//                sites the one that comes most often, of equals the latest.
//   Anchors      A stack that allocates once a cycle, or in one burst, has equal gaps, counted in
//                events: time is of no use, programs wait. Such stacks with equal periods that fire in
//                turns are anchors of one loop; two that are independent must agree. A cycle ends where
//                an anchor fires while about the least of the cycle is held. Within one call of a model, an
//                optimizer or a backward pass (analysis/loop/call_runs.h) only the first counts: the others
//                are layers, parameters and nodes.
//
//   event     a b c d d e . a b c d d e . a b c      a, b, c, d and e: period 7
//
// Of loops within loops the one with most anchors is taken, or a shorter one with half as many: layers
// are fewer stacks than a step, and what lies between two evaluations is hardly more. Where gradients are
// accumulated a cycle may be one pass.
//
// Thread safety: pure functions. Cost: linear in steps, sixteen bytes a step while they run.

#ifndef GMT_ANALYSIS_LOOP_CYCLE_ANCHOR_H_
#define GMT_ANALYSIS_LOOP_CYCLE_ANCHOR_H_

#include <string>
#include <vector>

#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

struct InferredCycles {
  std::string source;      // "memory of Optimizer.step", "stack 7 and 31 others that recur"
  std::vector<Step> ends;  // of cycles, in order; fewer than two: none were found
  // Of anchors: a cycle ends before a birth of this stack that comes more than so many steps after the
  // one before.
  uint32_t stack = 0;
  Step burst_gap = 0;
};

InferredCycles CyclesOfOptimizers(const Trace& trace, const format::Definitions& definitions);
InferredCycles CyclesOfAnchors(const Trace& trace, const format::Definitions& definitions);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_CYCLE_ANCHOR_H_
