// viewer/questions/range_table.h
//
// A table of what a range of events held, allocated and freed, by category, module, function, line,
// stack, thread or stream.
//
//   D1  `bytes` are those at the peak of the lane in the range: after the first of the events
//       from..to after which most of the lane is live, whether or not it matches the filter. Rows
//       add up to what matches, and so do the other columns except `inclusive`.
//   D2  `inclusive` counts a block once for each module, function or line on its stack, the other
//       columns count it only for that of the program's own frame. A folded table leaves out
//       frames that are noise, unless they are a stack's own. Memory of a backward pass also has
//       the stack of the forward call that caused it, and its own frame is usually there.
//   D3  Without `from < to` it is a table of one moment.
//
// Equal rows are ordered by id.
//
// Thread safety: one thread at a time. Cost: that of RangeTotals and of the kinds of blocks. A
// filter by size or address visits the births of the range, and what was held at its beginning.

#ifndef GMT_VIEWER_QUESTIONS_RANGE_TABLE_H_
#define GMT_VIEWER_QUESTIONS_RANGE_TABLE_H_

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

absl::StatusOr<RangeTable> MakeRangeTable(Recording& recording, const RangeQuery& query);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_RANGE_TABLE_H_
