// viewer/questions/box_rows.h
//
// Finds the blocks in a box of a picture: a stretch of time and a band of bytes or addresses.
//
//   B1  In the stacked layout a block is in the box if, at one of the box's moments, it lies at
//       least partly between `low` and `high` in the stack of all blocks of the lane that are live
//       then, in stack order (viewer/index/block_table.h). Moments are the peaks of kBoxMoments
//       columns of equal width between the events, and the last event.
//   B2  By address a block is in the box if it is live after one of the events from..to, and its
//       place lies at least partly between `low` and `high`.
//   B3  `peak` is the first of the moments after which the blocks in the box hold most.
//
// A picture shows blocks that are shorter than one of its columns as areas by category on top of
// the others. Here they have the places at which a closer picture shows them: on top as well, but
// one by one.
//
// Thread safety: one thread at a time. Cost: the births of the range, and of those blocks that are
// live at a moment the columns that they cover, all on all processors.

#ifndef GMT_VIEWER_QUESTIONS_BOX_ROWS_H_
#define GMT_VIEWER_QUESTIONS_BOX_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "viewer/index/view_index.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

inline constexpr uint32_t kBoxMoments = 256;
inline constexpr uint32_t kEventsOfBoxPart = 1u << 20;

struct BoxRows {
  std::vector<analysis::RowId> rows;
  uint32_t peak = 0;  // event
};

// `events_of_part`: how many events a thread takes at a time, at least 1. REQUIRES: the lane
// exists, and from <= to <= the last event.
absl::StatusOr<BoxRows> FindBoxRows(Recording& recording, const ViewIndex& index, uint32_t lane,
                                    uint32_t from, uint32_t to, const Box& box,
                                    uint32_t events_of_part = kEventsOfBoxPart);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_BOX_ROWS_H_
