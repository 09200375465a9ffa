// analysis/leaks/leak_walk.h
//
// Feeds a LeakDetector from a recording.
//
// What counts: every byte once. Blocks of frameworks, and driver and pinned memory that is no segment
// of theirs. A block is held until its allocator may use its place again: what waits for a stream for
// ever is held for ever.
//
// Thread safety: pure function. Cost: one walk over the steps, eight bytes a row.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_WALK_H_
#define GMT_ANALYSIS_LEAKS_LEAK_WALK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analysis/leaks/leak_detector.h"
#include "analysis/loop/phases.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

// The last cycles of a run, whose blocks are still to be freed by the next ones.
inline constexpr size_t kRecentCycles = 10;

struct LeakWalk {
  LeakDetector detector;
  std::map<int32_t, SiteHistory> segments;   // by device: what frameworks' allocators took
  std::map<int32_t, uint64_t> recent_peaks;  // by device: most held in the last cycles
};

// `cycles`: in order. What happened before the first is of the first; behind the last nothing counts.
LeakWalk WatchCycles(const Trace& trace, const std::vector<Cycle>& cycles,
                     std::optional<int32_t> device);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_WALK_H_
