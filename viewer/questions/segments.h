// viewer/questions/segments.h
//
// What an allocator held after an event, place by place.
//
//   segment 0x7f00 |--12--|......|--13--|//pending//|....|      offset, bytes, row of what lies in it
//
//   M1  What lies in the segments and waits for no stream adds up to live_bytes, which is what the lane
//       holds. A block outside of any segment that is known, or the part of it that another one covers
//       in a damaged recording, lies in a segment of its own without an address.
//   M2  Of a lane without segments, each piece of memory is one, and full.
//
// Thread safety: one thread at a time. Cost: what is held.

#ifndef GMT_VIEWER_QUESTIONS_SEGMENTS_H_
#define GMT_VIEWER_QUESTIONS_SEGMENTS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/fragmentation/segment_map.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

absl::StatusOr<Segments> MakeSegments(Recording& recording, uint32_t lane, uint32_t event);

// "small", "large, expandable", "private 0:1".
std::string PoolName(const analysis::Rows& rows, const analysis::SegmentMap& segment);

// The segment in which a block lies after an event, with all that is in it then; nullopt: in none.
// REQUIRES: `held` is HeldRows::After(event).
std::optional<analysis::SegmentMap> SegmentOf(const Recording& recording, analysis::RowId row,
                                              uint32_t event,
                                              const std::vector<analysis::RowId>& held);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_SEGMENTS_H_
