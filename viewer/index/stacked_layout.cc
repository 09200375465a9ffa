#include "viewer/index/stacked_layout.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace gmt::viewer {
namespace {

// The height of the stack by column. Blocks that cover all columns are added to a single number.
class Heights {
 public:
  explicit Heights(uint32_t columns) : columns_(columns) {}

  void Add(const Candidate& block) {
    if (Covers(block)) {
      everywhere_ += block.bytes;
      return;
    }
    for (uint32_t c = block.first; c < block.last; ++c) columns_[c] += block.bytes;
    most_ += block.bytes;
    if (++added_ % kRefresh == 0) most_ = *std::max_element(columns_.begin(), columns_.end());
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

 private:
  static constexpr uint32_t kRefresh = 64;

  double everywhere_ = 0;
  std::vector<double> columns_;
  double most_ = 0;  // upper bound of columns_
  uint32_t added_ = 0;
};

// The threshold for showing blocks: those with more bytes, and the first `equal` of those with
// `bytes`.
struct Least {
  double bytes = 0;
  uint64_t equal = UINT64_MAX;
};

class Stack {
 public:
  Stack(const StackedView& view, const Least& least)
      : view_(view), least_(least), all_(view.columns), items_height_(view.columns) {}

  // Called in stack order.
  void Add(std::span<const Candidate> candidates, uint32_t index) {
    const Candidate& block = candidates[index];
    const bool is_large =
        block.bytes > least_.bytes || (block.bytes == least_.bytes && least_.equal > 0);
    if (!is_large || !all_.IsSeen(block, view_.low, view_.high)) {
      all_.Add(block);
      waiting_ += block.bytes;
      return;
    }
    if (block.bytes == least_.bytes) --least_.equal;
    AddRun(block);
    items_.run_begin.push_back(static_cast<uint32_t>(items_.run_column.size()));
    items_.candidate.push_back(index);
    ++items_.blocks;
    all_.Add(block);
    items_height_.Add(block);
  }

  uint32_t blocks() const { return items_.blocks; }
  uint64_t shapes() const { return items_.blocks + items_.run_column.size(); }
  StackedItems Finish() {
    items_.run_begin.push_back(static_cast<uint32_t>(items_.run_column.size()));
    return std::move(items_);
  }

 private:
  // Adds a run of the bytes that lie below `block` and are in no item, if there are enough of them.
  void AddRun(const Candidate& block) {
    const double quarter = view_.row / 4;
    if (waiting_ < quarter) return;
    const auto begin = static_cast<uint32_t>(items_.run_column.size());
    double bytes = 0, left = 0;
    for (uint32_t c = block.first; c < block.last; ++c) {
      const double missing = all_.At(c) - items_height_.At(c);
      if (missing - bytes >= quarter || bytes - missing >= quarter) {
        bytes = std::max(missing, 0.0);
        items_.run_column.push_back(static_cast<uint16_t>(c));
        items_.run_bytes.push_back(bytes);
      }
      items_height_.AddTo(c, bytes);
      left = std::max(left, missing - bytes);
    }
    if (items_height_.Covers(block)) waiting_ = left;
    if (begin == items_.run_column.size()) return;
    if (bytes != 0 && block.last < view_.columns) {
      items_.run_column.push_back(block.last);
      items_.run_bytes.push_back(0);
    }
    items_.run_begin.push_back(begin);
    items_.candidate.push_back(StackedItems::kRun);
  }

  const StackedView view_;
  Least least_;
  Heights all_, items_height_;
  double waiting_ = 0;  // upper bound of the bytes that a column lacks
  StackedItems items_;
};

// Returns as many of the candidates as the limit of updates allows.
std::span<const Candidate> Affordable(std::span<const Candidate> candidates, uint32_t columns,
                                      uint64_t updates) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    const uint64_t cost = candidates[i].last - candidates[i].first;
    if (cost == columns) continue;
    if (cost > updates) return candidates.first(i);
    updates -= cost;
  }
  return candidates;
}

// Returns the threshold that `most` of the candidates reach.
Least LeastOfTheLargest(std::span<const Candidate> candidates, double least, size_t most) {
  std::vector<double> sizes;
  for (const Candidate& candidate : candidates) {
    if (candidate.bytes >= least) sizes.push_back(candidate.bytes);
  }
  if (most == 0) return {INFINITY, 0};
  if (sizes.size() <= most) return {least};
  const auto nth = sizes.begin() + static_cast<std::ptrdiff_t>(most - 1);
  std::nth_element(sizes.begin(), nth, sizes.end(), std::greater<>());
  const auto larger = std::count_if(sizes.begin(), nth, [&](double size) { return size > *nth; });
  return {*nth, most - static_cast<uint64_t>(larger)};
}

}  // namespace

StackedItems LayOutStacked(std::span<const Candidate> candidates, const StackedView& view,
                           const SelectLimits& limits) {
  candidates = Affordable(candidates, view.columns, limits.column_updates);
  Least least = {view.row};
  while (true) {
    Stack stack(view, least);
    uint32_t index = 0;
    while (index < candidates.size() && stack.shapes() <= limits.blocks) {
      stack.Add(candidates, index++);
    }
    if (stack.shapes() <= limits.blocks || std::isinf(least.bytes)) return stack.Finish();
    // As many as fit this time, less some room for the longer runs between them.
    least = LeastOfTheLargest(candidates, view.row, stack.blocks() * size_t{3} / 4);
  }
}

}  // namespace gmt::viewer
