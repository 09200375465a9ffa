// analysis/report/all_time.h
//
// Totals since the start of a recording whose oldest events are no longer kept (docs/long-runs.md):
// the sums that it begins with plus the events that follow.
//
// Invariants
//   S1  Allocations and frees = those of the sums + those of the kept events.
//   S2  The peak is the higher of both. If it is that of the sums, bytes_at_peak of all rows of a
//       heap add up to it.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_REPORT_ALL_TIME_H_
#define GMT_ANALYSIS_REPORT_ALL_TIME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/stacks/frames.h"

namespace gmt {
class HeapCounts;
}

namespace gmt::analysis {

struct AllTimeRow {
  std::string id;  // "stack/7", "stack/7+9" of a backward pass; "others"
  uint64_t bytes_at_peak = 0, count_at_peak = 0;
  uint64_t allocations = 0, allocated_bytes = 0;  // before the kept events
  std::vector<FrameText> frames;
};

struct AllTimeHeap {
  int32_t device = 0;  // kHostDevice: host memory
  std::string heap;
  uint64_t allocations = 0, frees = 0;
  uint64_t peak_bytes = 0;
  int64_t peak_t_ns = 0;
  // As reported by the framework's allocator.
  std::optional<uint64_t> peak_reserved_bytes;
  // Whether the peak lies before the kept events. If so, `rows` lists what was held then, most
  // bytes first.
  bool peak_is_before = false;
  std::vector<AllTimeRow> rows;
};

struct AllTime {
  int64_t details_from_t_ns = 0;   // time of the first kept event
  uint64_t events_before = 0;      // number of events that are no longer kept
  std::vector<AllTimeHeap> heaps;  // GPUs in order, then host memory
};

// Returns the device of counts that a collector has kept; kHostDevice: host memory.
int32_t DeviceOf(const HeapCounts& counts);

// Returns nullopt if the recording has all its events.
std::optional<AllTime> FindAllTime(const Examination& examination);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_ALL_TIME_H_
