// analysis/leaks/leak_cycles.h
//
// The cycles used to search for leaks: those of the training loop if there are any; otherwise, for
// servers, from one low-water mark of the held memory to the next; otherwise parts of equal length.
// The latter are not real cycles, so no verdict based on them is more than `possible`.
//
// No cycle ends within one call of a model, of an optimizer or of a backward pass
// (analysis/loop/call_runs.h). A recording of a single pass has no cycle and is too short for a
// verdict.
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

// Cycles from one low-water mark to the next. `begins_of_runs`: BeginsOfCallRuns(). Returns none if
// there are fewer than kMinLowWaters.
std::vector<Cycle> LowWaters(const Trace& trace, const std::vector<Step>& begins_of_runs);
inline constexpr size_t kMinLowWaters = 100;
// Low and high water, as fractions of the range between the minimum and the maximum held in a
// stretch.
inline constexpr double kLowShare = 0.05, kHighShare = 0.5;

// Parts with equal numbers of births and deaths, each many block lifetimes long.
std::vector<Cycle> EqualParts(const Trace& trace, const std::vector<Step>& begins_of_runs);

LeakCycles CyclesForLeaks(const Examination& examination, Window window);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_CYCLES_H_
