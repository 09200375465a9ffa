// viewer/questions/table.h
//
// A table of what a scope counts (scope_rows.h), by stack, function, ..., or block by block.
//
//   B1  The rows of all pages add up to total_bytes and total_blocks, which are those of the scope.
//   B2  peak_bytes is the most that the row's group held at one moment of the recording, of the blocks
//       that the filter lets through: never less than what is live at any event.
//
// median_lifetime_ns is that of the scope's blocks that were freed, of a part of them where there are
// more than kMaxLifetimes. A sparkline has what was live in the middle of equal numbers of events.
// kGrowth sorts by what the group gained from `from` to `to`, kRate by how many blocks it had in between,
// whatever is counted. Rows that are equal stand in an order of their own kind: stacks by number, sizes
// by size, blocks by birth.
//
// Thread safety: one thread at a time. Cost: the blocks of the scope, twice where a page shows lifetimes.

#ifndef GMT_VIEWER_QUESTIONS_TABLE_H_
#define GMT_VIEWER_QUESTIONS_TABLE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"
#include "viewer/questions/row_filter.h"

namespace gmt::viewer {

inline constexpr uint32_t kMaxSparkline = 1000;
inline constexpr size_t kMaxLifetimes = size_t{1} << 20;
// Blocks that are sorted at once; of more, the page's neighbourhood is found first.
inline constexpr size_t kMaxSorted = size_t{4} << 20;

absl::StatusOr<Table> MakeTable(Recording& recording, const TableQuery& query);

// kBlock. REQUIRES: the query was checked, `filter` is its own.
Table MakeBlockTable(Recording& recording, const TableQuery& query, RowFilter& filter,
                     size_t max_sorted = kMaxSorted);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_TABLE_H_
