// viewer/index/stack_heights.h
//
// StackHeights: the heights of the columns of a window while blocks are put on top of each other in
// stack order. Blocks that cover all columns are added to a single number.
//
// Thread safety: one thread at a time. Cost: the columns that a block covers.

#ifndef GMT_VIEWER_INDEX_STACK_HEIGHTS_H_
#define GMT_VIEWER_INDEX_STACK_HEIGHTS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "viewer/index/block_table.h"

namespace gmt::viewer {

class StackHeights {
 public:
  explicit StackHeights(uint32_t columns) : columns_(columns) {}

  void Add(const Candidate& block) {
    if (Covers(block)) {
      everywhere_ += block.bytes;
      return;
    }
    for (uint32_t c = block.first; c < block.last; ++c) columns_[c] += block.bytes;
    most_ += block.bytes;
    if (++added_ % kRefresh == 0) {
      const auto [min, max] = std::minmax_element(columns_.begin(), columns_.end());
      least_ = *min;
      most_ = *max;
    }
  }
  void AddTo(uint32_t column, double bytes) { columns_[column] += bytes; }
  double At(uint32_t column) const { return everywhere_ + columns_[column]; }
  bool Covers(const Candidate& block) const {
    return block.first == 0 && block.last == columns_.size();
  }

  // Returns whether a block put on top now would lie partly between low and high.
  bool IsSeen(const Candidate& block, double low, double high) const {
    if (everywhere_ >= high || everywhere_ + most_ + block.bytes <= low) return false;
    if (everywhere_ + block.bytes > low && everywhere_ + most_ < high) return true;
    for (uint32_t c = block.first; c < block.last; ++c) {
      if (At(c) < high && At(c) + block.bytes > low) return true;
    }
    return false;
  }
  // Returns true only if no later block can lie below `high`. REQUIRES: AddTo() was not called.
  bool IsFullUpTo(double high) const { return everywhere_ + least_ >= high; }

 private:
  static constexpr uint32_t kRefresh = 64;

  double everywhere_ = 0;
  std::vector<double> columns_;
  double least_ = 0, most_ = 0;  // bounds of columns_
  uint32_t added_ = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_STACK_HEIGHTS_H_
