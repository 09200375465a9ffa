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

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAKS_H_
