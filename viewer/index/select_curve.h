// viewer/index/select_curve.h
//
// Selects the CurveTile of a window, and the events that its columns correspond to.
//
// Thread safety: pure functions. REQUIRES: a valid window of an existing lane.

#ifndef GMT_VIEWER_INDEX_SELECT_CURVE_H_
#define GMT_VIEWER_INDEX_SELECT_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "viewer/index/index_parts.h"
#include "viewer/index/tiles.h"

namespace gmt::viewer {

struct ColumnEvents {
  std::vector<double> midpoints;      // by column: its midpoint on the axis
  std::vector<uint32_t> middle;       // the last event at or before the midpoint
  std::vector<uint32_t> first, last;  // a column covers the states after these and between
  std::vector<uint32_t> peak;         // the first of these after which most bytes are live
  std::vector<bool> is_known;         // whether the recording covers the midpoint

  size_t count() const { return middle.size(); }
};

ColumnEvents FindColumnEvents(const IndexParts& parts, const Window& window);

CurveTile SelectCurveOf(const IndexParts& parts, const Window& window, bool with_categories);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_SELECT_CURVE_H_
