// viewer/questions/flame.h
//
// The flame graph of what a scope counts: calls from the outermost inwards (or, inverted, from where
// memory was allocated outwards), each with all that lies behind it.
//
//   all 12 ─┬─ main 12 ─┬─ forward 9 ─── linear 9
//           │           └─ step 3
//           └─ unknown 0            what has no stack is a node of its own
//
//   F1  The root has the total of the table of the same scope, and what is a comparison's `before` that
//       of the other one.
//   F2  A node has at least what its children have together, in either column, while nothing shrank.
//   F3  Nodes are told apart by function, file, line and kind; between two recordings, whose lines may
//       have moved, without lines.
//   F4  At most kMaxNodes: of a node whose calls are too small for that, they become one, "smaller".
//
// Thread safety: one thread at a time. Cost: the frames of the stacks that the scope has.

#ifndef GMT_VIEWER_QUESTIONS_FLAME_H_
#define GMT_VIEWER_QUESTIONS_FLAME_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

inline constexpr size_t kMaxNodes = 60'000;

absl::StatusOr<FlameTree> MakeFlame(Recording& recording, const FlameQuery& query,
                                    size_t max_nodes = kMaxNodes);
// `other` may be `recording`; the filter is the query's.
absl::StatusOr<FlameTree> MakeFlame(Recording& recording, const FlameQuery& query, Recording& other,
                                    uint32_t other_lane, uint32_t other_to,
                                    size_t max_nodes = kMaxNodes);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_FLAME_H_
