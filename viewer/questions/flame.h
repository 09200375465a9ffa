// viewer/questions/flame.h
//
// The flame graph of what a scope counts: calls from the outermost inwards (or, inverted, outwards
// from the call that allocated memory), each with the total of its subtree.
//
//   all 12 ─┬─ main 12 ─┬─ forward 9 ─── linear 9
//           │           └─ step 3
//           └─ unknown 0            memory without a stack has a node of its own
//
// Memory of a backward pass is below the calls of the forward pass that caused it: after those
// follow a node "backward pass" and its own calls.
//
//   F1  The root has the total of the table of the same scope; in a comparison, its `before` is the
//       total of the other scope.
//   F2  A node has at least the sum of its children, in either column, provided that nothing
//       shrank.
//   F3  Nodes are distinguished by function, file, line and kind; between two recordings, whose
//       line numbers may differ, without lines.
//   F4  A node has the category that holds most of its bytes, except in a comparison.
//   F5  There are at most kMaxNodes: calls of a node that are too small become one node, "smaller".
//
// Thread safety: one thread at a time. Cost: proportional to the frames of the scope's stacks.

#ifndef GMT_VIEWER_QUESTIONS_FLAME_H_
#define GMT_VIEWER_QUESTIONS_FLAME_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

inline constexpr size_t kMaxNodes = 60'000;

absl::StatusOr<FlameTree> MakeFlame(Recording& recording, const FlameQuery& query,
                                    size_t max_nodes = kMaxNodes);
// `other` may be `recording`. The query's filter applies to both.
absl::StatusOr<FlameTree> MakeFlame(Recording& recording, const FlameQuery& query, Recording& other,
                                    uint32_t other_lane, uint32_t other_to,
                                    size_t max_nodes = kMaxNodes);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_FLAME_H_
