// analysis/leaks/leak_walk.h
//
// Feeds a LeakDetector from a recording.
//
// Every byte counts once: blocks of frameworks, and driver and pinned memory that is not one of
// their segments. A block is held until its allocator may reuse it: if it waits for a stream
// forever, it is held forever.
//
// Thread safety: pure function. Cost: one walk over the steps; eight bytes per row.

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

// The last cycles of a run; the next cycles, not recorded, would have freed their blocks.
inline constexpr size_t kRecentCycles = 10;

struct LeakWalk {
  LeakDetector detector;
  std::map<int32_t, SiteHistory> segments;   // by device: segments of frameworks' allocators
  std::map<int32_t, uint64_t> recent_peaks;  // by device: most held in the last cycles
};

// `cycles`: in order. What happened before the first counts for the first; what follows the last is
// ignored.
LeakWalk WatchCycles(const Trace& trace, const std::vector<Cycle>& cycles,
                     std::optional<int32_t> device);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_WALK_H_
