#include "analysis/diff/allocated.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {
namespace {

struct Key {
  uint32_t stack, forward_stack, heap;

  bool operator==(const Key&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Key& key) {
    return H::combine(std::move(h), key.stack, key.forward_stack, key.heap);
  }
};

struct Group {
  StackUse use;
  RowId largest = kNoRow;
};

}  // namespace

AllocatedState AllocatedAfter(const Trace& trace, const Categories& categories, int32_t device,
                              Step step) {
  const Rows& rows = trace.rows;
  AllocatedState state;
  absl::flat_hash_map<Key, Group> groups;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!rows.HeldAfter(row, step) || rows.device[row] != device) continue;
    const uint64_t bytes = rows.size[row];
    if (!IsAllocated(rows, row)) {
      if (!rows.IsRegion(row)) state.reserved_bytes += bytes;
      continue;
    }
    Group& group = groups[{rows.stack[row], rows.forward_stack[row], rows.heap[row]}];
    group.use.bytes += bytes;
    group.use.requested += std::min(rows.Requested(row).value_or(bytes), bytes);
    ++group.use.count;
    state.bytes += bytes;
    if (group.largest == kNoRow || bytes > rows.size[group.largest]) group.largest = row;
  }
  for (auto& [key, group] : groups) {
    group.use.stack = key.stack;
    group.use.forward_stack = key.forward_stack;
    group.use.heap = key.heap;
    group.use.category = categories.Of(group.largest).category;
    state.stacks.push_back(group.use);
  }
  std::sort(state.stacks.begin(), state.stacks.end(), [](const StackUse& a, const StackUse& b) {
    return std::tie(a.stack, a.forward_stack, a.heap) < std::tie(b.stack, b.forward_stack, b.heap);
  });
  return state;
}

}  // namespace gmt::analysis
