// analysis/leaks/leak_cycles.h
//
// The cycles by which leaks are looked for: those of the training loop where there are any; else, for
// servers, from one low-water mark of what is held to the next; else parts of equal length, which are
// no cycles: no verdict on them is more than `possible`.
//
// Within one call of a model, of an optimizer or of a backward pass (analysis/loop/call_runs.h) no cycle ends:
// a recording of one pass has none, and is too short for a verdict.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_CYCLES_H_
#define GMT_ANALYSIS_LEAKS_LEAK_CYCLES_H_

#include <string>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/examination/replay.h"

namespace gmt::analysis {

struct LeakCycles {
  std::string source;
  std::vector<Cycle> cycles;  // those in the window
  bool inferred = false, clear = true;
};

// `begins_of_runs`: BeginsOfCallRuns(). From one low-water mark to the next; fewer than kLeastLowWaters are none.
std::vector<Cycle> LowWaters(const Trace& trace, const std::vector<Step>& begins_of_runs);
inline constexpr size_t kLeastLowWaters = 100;
// Low and high water, as shares of the way from the least to the most that a stretch holds.
inline constexpr double kLowShare = 0.05, kHighShare = 0.5;

// Parts with equally many births and deaths, each many lifetimes of a block long.
std::vector<Cycle> EqualParts(const Trace& trace, const std::vector<Step>& begins_of_runs);

LeakCycles CyclesForLeaks(const Examination& examination, Window window);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_CYCLES_H_
