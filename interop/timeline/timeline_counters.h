// interop/timeline/timeline_counters.h
//
// The counters of a timeline: for each device the live bytes of each heap, what frameworks reserve,
// the live bytes of each category, and what the driver and NVML report.
//
// Thread safety: pure functions.

#ifndef GMT_INTEROP_TIMELINE_TIMELINE_COUNTERS_H_
#define GMT_INTEROP_TIMELINE_TIMELINE_COUNTERS_H_

#include <cstddef>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/trace/trace.h"
#include "interop/timeline/timeline.h"

namespace gmt::interop {

std::vector<Timeline::Counter> TimelineCounters(const analysis::Trace& trace,
                                                const analysis::Categories& categories);

// Returns whether points were left out (MakeTimeline).
bool ThinOut(std::vector<Timeline::Point>& points, size_t max_points);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TIMELINE_TIMELINE_COUNTERS_H_
