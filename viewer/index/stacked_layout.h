// viewer/index/stacked_layout.h
//
// Turns the blocks of a window, in stack order, into the items of a tile: blocks at least a row
// high that lie partly between low and high, and between them runs, which are the bytes of blocks
// not shown, one run for each category.
//
//    ____          block C
//   |____|___      block B, moved up by the runs
//   |  run   |     small blocks of one category that lie below B
//   |__ run _|     and those of another
//   |________|__   block A
//
// Invariants
//   L1  At the peak of a column, a shown block lies on the items before it at the height at
//       which it lies on all blocks before it, within a quarter of a row: runs ignore smaller
//       changes.
//   L2  The items of a column never exceed the bytes of its blocks by more than a quarter of a row.
//
// Thread safety: pure function. Cost: proportional to the columns that blocks cover, limited by
// SelectLimits; a block that covers all columns costs one addition.

#ifndef GMT_VIEWER_INDEX_STACKED_LAYOUT_H_
#define GMT_VIEWER_INDEX_STACKED_LAYOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "viewer/index/block_table.h"
#include "viewer/index/tiles.h"

namespace gmt::viewer {

struct StackedItems {
  static constexpr uint32_t kRun = UINT32_MAX;
  std::vector<uint32_t> candidate;  // by item: index into the candidates, or kRun
  std::vector<uint8_t> category;    // by item: code
  std::vector<uint32_t> run_begin;  // by item, plus one at the end
  std::vector<uint16_t> run_column;
  std::vector<double> run_bytes;
  uint32_t blocks = 0;  // number of items that are not runs
};

struct StackedView {
  uint32_t columns = 0;
  double low = 0, high = 0;  // bytes
  double row = 0;            // bytes per row
};

StackedItems LayOutStacked(std::span<const Candidate> candidates, const StackedView& view,
                           const SelectLimits& limits);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_STACKED_LAYOUT_H_
