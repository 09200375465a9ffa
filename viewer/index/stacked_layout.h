// viewer/index/stacked_layout.h
//
// From the blocks of a window in stack order to the items of a tile: blocks that are a row high and lie
// between low and high somewhere, and between them runs, the bytes of those that are not shown.
//
//    ____          block C
//   |____|___      block B, moved up by the run
//   |  run   |     small blocks that lie below B
//   |________|__   block A
//
// Invariants
//   L1  At the middle of a column a shown block lies on the items before it exactly where it lies on
//       all blocks before it, give or take a quarter of a row: a run need not follow smaller changes.
//   L2  The items of a column never have more bytes than its blocks, and a quarter of a row.
//
// Thread safety: pure function. Cost: the columns that blocks cover, at most SelectLimits has; blocks
// that cover all of them cost one addition.

#ifndef GMT_VIEWER_INDEX_STACKED_LAYOUT_H_
#define GMT_VIEWER_INDEX_STACKED_LAYOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "viewer/index/block_table.h"
#include "viewer/index/view_index.h"

namespace gmt::viewer {

struct StackedItems {
  static constexpr uint32_t kRun = UINT32_MAX;
  std::vector<uint32_t> candidate;  // by item: index of the candidates, or kRun
  std::vector<uint32_t> run_begin;  // by item, and one more
  std::vector<uint16_t> run_column;
  std::vector<double> run_bytes;
  uint32_t blocks = 0;  // items that are no run
};

struct StackedView {
  uint32_t columns = 0;
  double low = 0, high = 0;  // bytes
  double row = 0;            // bytes of a row
};

StackedItems LayOutStacked(std::span<const Candidate> candidates, const StackedView& view,
                           const SelectLimits& limits);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_STACKED_LAYOUT_H_
