// viewer/questions/range_amounts.h
//
// What each kind of blocks (row_kinds.h) has in a range of events: the sums from which tables of
// ranges (range_table.h) are made.
//
// Thread safety: one thread at a time. Cost: that of RangeTotals. A filter that blocks of one kind
// may match or not visits the births of the range, and what was held at its beginning; so does a
// box (box_rows.h).

#ifndef GMT_VIEWER_QUESTIONS_RANGE_AMOUNTS_H_
#define GMT_VIEWER_QUESTIONS_RANGE_AMOUNTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "viewer/index/view_index.h"
#include "viewer/questions/recording.h"
#include "viewer/questions/row_filter.h"

namespace gmt::viewer {

inline constexpr double kNsPerSecond = 1e9;

struct Amounts {
  uint64_t bytes = 0;  // at the peak
  double byte_ns = 0;
  uint64_t allocations = 0;
  uint64_t growth = 0;  // modulo 2^64
  uint64_t end_bytes = 0;
  bool is_there = false;

  void Add(const Amounts& other);
  RangeAmounts Result() const;
};

struct AmountsOfKinds {
  std::vector<Amounts> by_kind;
  uint32_t peak = 0;  // event
};

// `index`: for a range with a box. REQUIRES: the lane exists, and from <= to <= the last event.
absl::StatusOr<AmountsOfKinds> SumUpKinds(Recording& recording, const ViewIndex* index,
                                          uint32_t lane, const EventRange& range,
                                          RowFilter& filter);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_RANGE_AMOUNTS_H_
