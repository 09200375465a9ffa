// analysis/loop/call_runs.h
//
// Runs of births that come from one call. Layers recur within one call of a model, parameters
// within one step of an optimizer, and nodes within one backward pass, just as steps recur in a
// loop. This module groups them so that they are not mistaken for steps.
//
//   birth   embed  layer  layer  layer  loss | mm (backward)  mm | exp_avg  exp_avg | embed  layer ...
//   call    ------- model(x), line 20 -- none  -- backward ----    optimizer.step()   -- model(x), line 20
//   run     1      1      1      1      2      3              3    4        4         5      5
//
// A call is identified by the frames outside it: the callers of the outermost module or optimizer.
// Births that come from no such call form runs of their own. Two calls from the same line with
// nothing in between count as one run, because their stacks are equal.
//
// Thread safety: one thread at a time. Cost: one walk over the births, and a second one if some
// have no stack; each stack is examined once.

#ifndef GMT_ANALYSIS_LOOP_CALL_RUNS_H_
#define GMT_ANALYSIS_LOOP_CALL_RUNS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/loop/cycle_births.h"
#include "analysis/loop/stack_phases.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

class CallRuns {
 public:
  // REQUIRES: the arguments outlive this object.
  CallRuns(const Trace& trace, const Births& births, const format::Definitions& definitions);

  // Whether a birth with this stack begins a run. REQUIRES: called for each birth that counts, in
  // order.
  bool Begins(uint32_t stack);

 private:
  static constexpr uint64_t kNoCall = 0, kNoStack = 1, kBackward = 2, kFirstSite = 3,
                            kUnknownSite = UINT64_MAX;

  // Identifies the call that a stack comes from: one of the values above, or a hash of the call's
  // place.
  uint64_t SiteOf(uint32_t stack);
  uint64_t FindSite(uint32_t stack);
  bool IsCall(uint32_t frame);
  // Whether any birth comes from a call.
  bool HasCalls();

  const Trace& trace_;
  const Births& births_;
  const format::Definitions& definitions_;
  StackPhases phases_;
  std::vector<uint64_t> sites_;                // by stack
  absl::flat_hash_map<uint32_t, bool> calls_;  // by frame
  std::optional<bool> has_calls_;
  uint64_t last_site_ = kNoCall;
};

// Returns the steps of the first birth of each run, in order.
std::vector<Step> BeginsOfCallRuns(const Trace& trace, const RowKinds& kinds,
                                   const format::Definitions& definitions);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_CALL_RUNS_H_
