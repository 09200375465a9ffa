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
// Thread safety: one call at a time. Cost: the births of the range, and of those blocks that are
// live at a moment the columns that they cover, all on all processors.

#ifndef GMT_VIEWER_QUESTIONS_BOX_ROWS_H_
#define GMT_VIEWER_QUESTIONS_BOX_ROWS_H_

#include <cstdint>
#include <span>
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

// What is asked. REQUIRES: the lane exists, and from <= to <= the last event.
struct BoxRange {
  uint32_t lane = 0;
  uint32_t from = 0, to = 0;  // events
  Box box;
};

// `events_of_part`: how many events a thread takes at a time, at least 1.
absl::StatusOr<BoxRows> FindBoxRows(Recording& recording, const ViewIndex& index,
                                    const BoxRange& range,
                                    uint32_t events_of_part = kEventsOfBoxPart);

// Receives blocks in any order.
class BoxTaker {
 public:
  virtual ~BoxTaker() = default;
  // Called from several threads at once.
  virtual void Take(std::span<const analysis::RowId> rows) = 0;
};

// Passes on the blocks of a box by address without making a list of them, which could be long.
// Returns `peak`.
absl::StatusOr<uint32_t> TakeBoxRows(Recording& recording, const ViewIndex& index,
                                     const BoxRange& range, BoxTaker& taker,
                                     uint32_t events_of_part = kEventsOfBoxPart);
// Returns those that are held after `event`. REQUIRES: TakeBoxRows() succeeded with this range, and
// from <= event <= to.
std::vector<analysis::RowId> HeldInBox(Recording& recording, const ViewIndex& index,
                                       const BoxRange& range, uint32_t event);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_BOX_ROWS_H_
