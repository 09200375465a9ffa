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
//   D4  With a box it is a table of the blocks in it (box_rows.h), each with its whole size and the
//       whole time of the range in which it was held, and `bytes` are those at the box's peak.
//   D5  A table `within` rows counts what these rows count, so that its rows add up to the last of
//       them. Modules, functions and lines among them, and those of the table, are properties of
//       one frame: the functions within a module are those of frames of this module. `inclusive`
//       counts a block that has such a frame anywhere on its stack.
//
//   D6  With another range, a row has its amounts in both. A row of one of them has zeros in the
//       other. `side` says whether rows are sorted by those of the range, those of the other one,
//       or the former minus the latter.
//   D7  `mean_bytes` are byte-seconds per second of the range, and of a range without a duration
//       what is held at its end. Its rate of allocations is 0.
//
// Equal rows are ordered by id.
//
// Thread safety: one thread at a time. Cost: that of the amounts (range_amounts.h), and of the
// kinds of blocks.

#ifndef GMT_VIEWER_QUESTIONS_RANGE_TABLE_H_
#define GMT_VIEWER_QUESTIONS_RANGE_TABLE_H_

#include "absl/status/statusor.h"
#include "viewer/index/view_index.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

// `index`: for a query with a box; null if it does not exist yet.
absl::StatusOr<RangeTable> MakeRangeTable(Recording& recording, const ViewIndex* index,
                                          const RangeQuery& query);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_RANGE_TABLE_H_
