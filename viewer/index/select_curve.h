// viewer/index/select_curve.h
//
// CurveTile of a window, and the events that its columns stand for.
//
// Thread safety: pure functions. REQUIRES: a window that makes sense, of a lane that there is.

#ifndef GMT_VIEWER_INDEX_SELECT_CURVE_H_
#define GMT_VIEWER_INDEX_SELECT_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "viewer/index/index_parts.h"
#include "viewer/index/tiles.h"

namespace gmt::viewer {

struct ColumnEvents {
  std::vector<double> middles;        // by column: its middle, on the axis
  std::vector<uint32_t> middle;       // the last event at or before it
  std::vector<uint32_t> first, last;  // a column sees the states after these and all in between
  std::vector<bool> is_known;         // the recording has that moment

  size_t count() const { return middle.size(); }
};

ColumnEvents FindColumnEvents(const IndexParts& parts, const Window& window);
// Only what layouts of blocks need: the middles, `first` of the first column and `last` of the last.
ColumnEvents FindColumnMiddles(const IndexParts& parts, const Window& window);

CurveTile SelectCurveOf(const IndexParts& parts, const Window& window, bool with_categories);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_SELECT_CURVE_H_
