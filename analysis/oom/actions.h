// analysis/oom/actions.h
//
// What would and would not help against running out of memory, with its effect in bytes on this
// run: computed from the recording, never quoted. docs/oom.md describes how each effect is
// computed.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_OOM_ACTIONS_H_
#define GMT_ANALYSIS_OOM_ACTIONS_H_

#include "analysis/oom/evidence.h"
#include "analysis/oom/oom.h"
#include "analysis/oom/verdict.h"

namespace gmt::analysis {

// Fills `actions` and `not_helpful`. REQUIRES: the report is otherwise complete.
void AddActions(const Examination& examination, const OomFacts& facts, const LeakAtFailure& leak,
                OomReport& report);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_ACTIONS_H_
