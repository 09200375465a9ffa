#include "viewer/index/stacked_layout.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "viewer/index/stack_heights.h"

namespace gmt::viewer {
namespace {

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
      Wait(block);
      return;
    }
    if (block.bytes == least_.bytes) --least_.equal;
    AddRuns(block);
    AddItem(index, block.category, static_cast<uint32_t>(items_.run_column.size()));
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
  // Blocks of one category that are in no item yet.
  struct Waiting {
    uint8_t category = 0;
    double most = 0;              // upper bound of the bytes of a column
    double everywhere = 0;        // bytes of blocks that cover all columns
    std::vector<double> columns;  // bytes of the others

    void Spread() {
      if (everywhere == 0) return;
      for (double& bytes : columns) bytes += everywhere;
      everywhere = 0;
    }
  };

  void AddItem(uint32_t candidate, uint8_t category, uint32_t run_begin) {
    items_.candidate.push_back(candidate);
    items_.category.push_back(category);
    items_.run_begin.push_back(run_begin);
  }

  void Wait(const Candidate& block) {
    auto at = std::lower_bound(
        waiting_.begin(), waiting_.end(), block.category,
        [](const Waiting& waiting, uint8_t category) { return waiting.category < category; });
    if (at == waiting_.end() || at->category != block.category) {
      at = waiting_.insert(at, {block.category, 0, 0, std::vector<double>(view_.columns)});
    }
    at->most += block.bytes;
    if (all_.Covers(block)) {
      at->everywhere += block.bytes;
      return;
    }
    for (uint32_t c = block.first; c < block.last; ++c) at->columns[c] += block.bytes;
  }

  // Adds runs of the bytes that lie below `block` and are in no item, if there are enough of them.
  // A category with too few of them becomes part of the next one.
  void AddRuns(const Candidate& block) {
    double most = error_;
    for (const Waiting& waiting : waiting_) most += waiting.most;
    if (most < view_.row / 4) return;
    missing_.assign(block.last - block.first, 0);
    for (uint32_t c = block.first; c < block.last; ++c)
      missing_[c - block.first] = all_.At(c) - items_height_.At(c);
    for (Waiting& waiting : waiting_) {
      if (waiting.most == 0) continue;
      waiting.Spread();
      for (uint32_t c = block.first; c < block.last; ++c)
        missing_[c - block.first] -= waiting.columns[c];
    }
    for (Waiting& waiting : waiting_) {
      if (waiting.most > 0) AddRun(block, waiting);
    }
    const double left = *std::max_element(missing_.begin(), missing_.end());
    error_ = all_.Covers(block) ? left : std::max(error_, left);
  }

  void AddRun(const Candidate& block, Waiting& waiting) {
    const double quarter = view_.row / 4;
    const auto begin = static_cast<uint32_t>(items_.run_column.size());
    double bytes = 0;
    for (uint32_t c = block.first; c < block.last; ++c) {
      double& missing = missing_[c - block.first];
      missing += std::exchange(waiting.columns[c], 0);
      if (missing - bytes >= quarter || bytes - missing >= quarter) {
        bytes = std::max(missing, 0.0);
        items_.run_column.push_back(static_cast<uint16_t>(c));
        items_.run_bytes.push_back(bytes);
      }
      items_height_.AddTo(c, bytes);
      missing -= bytes;
    }
    if (all_.Covers(block)) waiting.most = 0;
    if (begin == items_.run_column.size()) return;
    if (bytes != 0 && block.last < view_.columns) {
      items_.run_column.push_back(block.last);
      items_.run_bytes.push_back(0);
    }
    AddItem(StackedItems::kRun, waiting.category, begin);
  }

  const StackedView view_;
  Least least_;
  StackHeights all_, items_height_;
  std::vector<Waiting> waiting_;  // by category
  std::vector<double> missing_;   // by column of a block: bytes below it that are in no item
  double error_ = 0;              // upper bound of the bytes that are in no item and do not wait
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
