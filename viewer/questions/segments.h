// viewer/questions/segments.h
//
// What an allocator held after an event, by location.
//
//   segment 0x7f00 |--12--|......|--13--|//pending//|....|      offset, bytes, row of its blocks
//
//   M1  The blocks in segments that do not wait for a stream add up to live_bytes, which is what
//       the lane holds. A block outside of all known segments, or the part of a block that another
//       one covers in a damaged recording, is listed in a separate segment without an address.
//   M2  In a lane without segments, each allocation is a full segment.
//
// Thread safety: one thread at a time. Cost: proportional to what is held.

#ifndef GMT_VIEWER_QUESTIONS_SEGMENTS_H_
#define GMT_VIEWER_QUESTIONS_SEGMENTS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/fragmentation/segment_map.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

absl::StatusOr<Segments> MakeSegments(Recording& recording, uint32_t lane, uint32_t event);

// Returns a name such as "small", "large, expandable" or "private 0:1".
std::string PoolName(const analysis::Rows& rows, const analysis::SegmentMap& segment);

// Returns the segment that contains a block after an event, with its contents at that time;
// nullopt: none.
// REQUIRES: `held` is HeldRows::After(event).
std::optional<analysis::SegmentMap> SegmentOf(const Recording& recording, analysis::RowId row,
                                              uint32_t event,
                                              const std::vector<analysis::RowId>& held);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_SEGMENTS_H_
