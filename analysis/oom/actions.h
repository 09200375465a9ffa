// analysis/oom/actions.h
//
// What would help against an out of memory, with its bytes on this run, and what would not: computed
// from the recording, never quoted. docs/oom.md says how each effect is found.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_OOM_ACTIONS_H_
#define GMT_ANALYSIS_OOM_ACTIONS_H_

#include "analysis/oom/evidence.h"
#include "analysis/oom/oom.h"
#include "analysis/oom/verdict.h"

namespace gmt::analysis {

// Fills actions and not_helpful of a report that is whole but for these.
void AddActions(const Examination& examination, const OomFacts& facts, const LeakAtFailure& leak,
                OomReport& report);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_ACTIONS_H_
