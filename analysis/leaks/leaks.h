// analysis/leaks/leaks.h
//
// Leaks: which stacks hold more after each cycle of the program's loop, without bound. Watching
// cycles distinguishes a leak from what resembles one (a cache that fills, a queue of bounded
// length, state created once). docs/leaks.md describes the tests that a suspect has passed and the
// number of cycles that each verdict needs.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAKS_H_
#define GMT_ANALYSIS_LEAKS_LEAKS_H_

#include "analysis/examination/examination.h"
#include "analysis/leaks/leak_report.h"

namespace gmt::analysis {

LeakReport FindLeaks(const Examination& examination, const LeakOptions& options = {});

// Leaks until an allocation failed at `t_ns`: a failed program frees what it had kept. A saved
// state of the search is used if no cycle begins later, because then it is that of the failure
// (leak_watcher.h).
LeakReport FindLeaksUntilFailure(const Examination& examination, int64_t t_ns);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAKS_H_
