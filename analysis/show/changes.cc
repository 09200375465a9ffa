#include "analysis/show/changes.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {
namespace {

// Counts a row in the same layer as CycleUse does, so that both count the same bytes.
class Layer {
 public:
  Layer(const Trace& trace, int32_t device) : rows_(trace.rows), device_(device) {
    for (RowId row = 0; row < rows_.count() && !has_blocks_; ++row) {
      has_blocks_ = rows_.device[row] == device && rows_.IsBlock(row);
    }
  }
  bool Has(RowId row) const {
    return rows_.device[row] == device_ && !rows_.IsRegion(row) &&
           rows_.IsBlock(row) == has_blocks_;
  }

 private:
  const Rows& rows_;
  const int32_t device_;
  bool has_blocks_ = false;
};

// `held(row)` returns whether a row was held before, and after.
template <typename Held>
std::vector<StackChange> Sum(const Trace& trace, int32_t device, const Held& held) {
  const Rows& rows = trace.rows;
  const Layer layer(trace, device);
  absl::flat_hash_map<uint64_t, StackChange> changes;
  for (RowId row = 0; row < rows.count(); ++row) {
    const auto [before, after] = held(row);
    if ((!before && !after) || !layer.Has(row)) continue;
    StackChange& change = changes[uint64_t{rows.heap[row]} << 32 | rows.stack[row]];
    change.stack = rows.stack[row];
    change.heap = rows.heap[row];
    if (before) change.before_bytes += rows.size[row], ++change.before_count;
    if (after) change.after_bytes += rows.size[row], ++change.after_count;
  }
  std::vector<StackChange> sorted;
  for (const auto& [key, change] : changes) {
    if (change.bytes() != 0) sorted.push_back(change);
  }
  // Growth, largest first, then shrinkage, largest first.
  std::sort(sorted.begin(), sorted.end(), [](const StackChange& a, const StackChange& b) {
    const auto rank = [](const StackChange& c) {
      const uint64_t size = static_cast<uint64_t>(c.bytes());
      return std::tuple(c.bytes() < 0, c.bytes() < 0 ? size : ~size, c.heap, c.stack);
    };
    return rank(a) < rank(b);
  });
  return sorted;
}

}  // namespace

std::vector<StackChange> ChangesBetween(const Trace& trace, int32_t device, Step before,
                                        Step after) {
  return Sum(trace, device, [&](RowId row) {
    return std::pair(trace.rows.HeldAfter(row, before), trace.rows.HeldAfter(row, after));
  });
}

std::vector<StackChange> HeldByStack(const Trace& trace, int32_t device, Step step) {
  return Sum(trace, device,
             [&](RowId row) { return std::pair(false, trace.rows.HeldAfter(row, step)); });
}

}  // namespace gmt::analysis
