// analysis/loop/call_runs.h
//
// Runs of births that came out of one call. Layers recur within one call of a model, parameters
// within one step of an optimizer and nodes within one backward pass as steps do in a loop, and are none.
//
//   birth   embed  layer  layer  layer  loss | mm (backward)  mm | exp_avg  exp_avg | embed  layer ...
//   call    ------- model(x), line 20 -- none  -- backward ----    optimizer.step()   -- model(x), line 20
//   run     1      1      1      1      2      3              3    4        4         5      5
//
// A call is known by the frames outside it: those that called the outermost module or optimizer. Births that come from
// no such call are runs of their own. Two calls from one line with nothing in between are one run: their stacks
// are equal.
//
// Thread safety: pure functions. Cost: one walk over the steps, each stack looked at once.

#ifndef GMT_ANALYSIS_LOOP_CALL_RUNS_H_
#define GMT_ANALYSIS_LOOP_CALL_RUNS_H_

#include <cstdint>
#include <vector>

#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

// Where runs begin: the steps of their first births, in order.
std::vector<Step> BeginsOfCallRuns(const Trace& trace, const format::Definitions& definitions);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_CALL_RUNS_H_
