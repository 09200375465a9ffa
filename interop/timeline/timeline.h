// interop/timeline/timeline.h
//
// A recording as curves and tracks over time, from which the formats of trace viewers are written.
//
//   counters  cuda:0 pytorch live          __/--\__/--\__     bytes
//   tracks    steps                        | 1 | 2 | 3 |
//             phases                       |fw|bw|opt|...
//             thread 11                    | range |  ! mark
//             GPU 0                           ! out of memory
//
// Thread safety: pure functions. Cost: a walk over the steps, and memory for every point.

#ifndef GMT_INTEROP_TIMELINE_TIMELINE_H_
#define GMT_INTEROP_TIMELINE_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"

namespace gmt::interop {

struct Timeline {
  // Times are those of the trace: nanoseconds since the start of the recording.
  struct Point {
    int64_t t_ns = 0;
    uint64_t bytes = 0;  // from t_ns on
  };
  struct Counter {
    std::string name;           // "cuda:0 pytorch live"
    std::vector<Point> points;  // in order; a moment may have several
  };
  struct Slice {
    std::string name;
    int64_t begin_ns = 0, end_ns = 0;
    // A forward and its backward pass, which ends the flow, have the same number.
    std::optional<uint64_t> flow = std::nullopt;
    bool ends_flow = false;
  };
  struct Instant {
    std::string name;
    int64_t t_ns = 0;
  };
  // The slices of a track nest: a slice begins before another ends only if it ends before it too.
  // They are ordered by beginning, outer ones first.
  struct Track {
    std::string name;                // "steps", "thread 11"
    std::optional<uint32_t> thread;  // that the events belong to
    std::vector<Slice> slices;
    std::vector<Instant> instants;
  };
  std::vector<Counter> counters;
  std::vector<Track> tracks;
  bool is_thinned = false;  // points are left out: see MakeTimeline
};

inline constexpr size_t kMaxPointsOfCounter = 200'000;

// A counter with more than `max_points` keeps its minima, maxima and ends of equal parts, so that
// peaks stay exact.
Timeline MakeTimeline(const analysis::Examination& examination,
                      const analysis::Categories& categories,
                      size_t max_points = kMaxPointsOfCounter);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TIMELINE_TIMELINE_H_
