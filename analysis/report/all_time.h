// analysis/report/all_time.h
//
// What a recording came to since its start, where its oldest events are kept no more
// (docs/long-runs.md): the sums that it begins with, and the events behind them.
//
// Sums that always hold
//   S1  allocations and frees = those of the sums + those of the events that are kept.
//   S2  The peak is the higher of both; at the one of the sums, bytes_at_peak of all rows of a heap
//       are its peak.
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

namespace gmt::analysis {

struct AllTimeRow {
  std::string id;  // "stack/7", "stack/7+9" of a backward pass; "others"
  uint64_t bytes_at_peak = 0, count_at_peak = 0;
  uint64_t allocations = 0, allocated_bytes = 0;  // before the events that are kept
  std::vector<FrameText> frames;
};

struct AllTimeHeap {
  int32_t device = 0;  // kHostDevice: host memory
  std::string heap;
  uint64_t allocations = 0, frees = 0;
  uint64_t peak_bytes = 0;
  int64_t peak_t_ns = 0;
  // Of a framework's allocator, as it says itself.
  std::optional<uint64_t> peak_reserved_bytes;
  // The peak lies before the events that are kept. Then who held it, most bytes first.
  bool peak_is_before = false;
  std::vector<AllTimeRow> rows;
};

struct AllTime {
  int64_t details_from_t_ns = 0;   // of the first event that is kept
  uint64_t events_before = 0;      // that are kept no more
  std::vector<AllTimeHeap> heaps;  // GPUs in order, then host memory
};

// Nothing where the recording has all its events.
std::optional<AllTime> FindAllTime(const Examination& examination);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_ALL_TIME_H_
