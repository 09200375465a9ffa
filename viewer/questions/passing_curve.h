// viewer/questions/passing_curve.h
//
// PassingCurve: what the blocks of a lane hold that a filter lets through, at the middle of each column
// of a window. A block that no middle sees is passed over before the filter looks at it:
//
//   middles   |        |        |        |
//   A  -----------------------------          held at the first, gone at the last
//   B           ----                          seen by none
//   C               ------                    from the second to before the third
//
// Without a filter it is the middle of the curve `live` (viewer/index/select_curve.h).
//
// Thread safety: one thread at a time. Cost: that of HeldRows at the first middle, then the births up to
// the last one, in their order: docs/viewer.md, "What the filter lets through".

#ifndef GMT_VIEWER_QUESTIONS_PASSING_CURVE_H_
#define GMT_VIEWER_QUESTIONS_PASSING_CURVE_H_

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

// INVALID_ARGUMENT where there is no such lane or event, or the filter makes no sense.
// REQUIRES: the events of `columns` ascend.
absl::StatusOr<PassingCurve> MakePassingCurve(Recording& recording, uint32_t lane,
                                              const Filter& filter, const ColumnMiddles& columns);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_PASSING_CURVE_H_
