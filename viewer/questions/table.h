// viewer/questions/table.h
//
// A table of what a scope counts (scope_rows.h), by stack, function, etc., or block by block.
//
//   B1  The rows of all pages add up to total_bytes and total_blocks, which are those of the scope.
//   B2  peak_bytes is the maximum that the row's group held at any time in the recording, counting
//       the blocks that match the filter: never less than what is live at any event.
//
// median_lifetime_ns is the median over the scope's freed blocks, or over a sample of them if there
// are more than kMaxLifetimes. A sparkline shows what was live at the midpoints of parts with equal
// numbers of events. kGrowth sorts by what the group gained from `from` to `to`, kRate by the
// number of its blocks in between, whatever the scope counts. Equal rows are ordered by kind:
// stacks by number, sizes by size, blocks by birth.
//
// Thread safety: one thread at a time. Cost: the blocks of the scope, twice if a page shows
// lifetimes.

#ifndef GMT_VIEWER_QUESTIONS_TABLE_H_
#define GMT_VIEWER_QUESTIONS_TABLE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"
#include "viewer/questions/row_filter.h"

namespace gmt::viewer {

inline constexpr uint32_t kMaxSparkline = 1000;
inline constexpr size_t kMaxLifetimes = size_t{1} << 20;
// The maximum number of blocks sorted at once; with more, the keys around the page are found first.
inline constexpr size_t kMaxSorted = size_t{4} << 20;

absl::StatusOr<Table> MakeTable(Recording& recording, const TableQuery& query);

// For kBlock. REQUIRES: the query was checked, and `filter` was made from it.
Table MakeBlockTable(Recording& recording, const TableQuery& query, RowFilter& filter,
                     size_t max_sorted = kMaxSorted);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_TABLE_H_
