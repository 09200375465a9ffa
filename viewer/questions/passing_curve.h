// viewer/questions/passing_curve.h
//
// PassingCurve: the bytes of a lane's blocks that match a filter, at the midpoint of each column of
// a window. A block that is live at no midpoint is skipped before the filter is applied:
//
//   midpoints |        |        |        |
//   A  -----------------------------          held at the first, gone at the last
//   B           ----                          live at none
//   C               ------                    from the second to before the third
//
// Without a filter it equals the `live` curve at the midpoints (viewer/index/select_curve.h).
//
// Thread safety: one thread at a time. Cost: that of HeldRows at the first midpoint, then the
// births up to the last one, in order: docs/viewer.md, "What the filter lets through".

#ifndef GMT_VIEWER_QUESTIONS_PASSING_CURVE_H_
#define GMT_VIEWER_QUESTIONS_PASSING_CURVE_H_

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

// Returns INVALID_ARGUMENT if there is no such lane or event, or if the filter is invalid.
// REQUIRES: the events of `columns` ascend.
absl::StatusOr<PassingCurve> MakePassingCurve(Recording& recording, uint32_t lane,
                                              const Filter& filter, const ColumnPeaks& columns);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_PASSING_CURVE_H_
