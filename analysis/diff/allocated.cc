#include "analysis/diff/allocated.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {
namespace {

bool IsSegment(const Rows& rows, RowId row) {
  return rows.heap[row] <= kHostHeap && (rows.flags[row] & kRowHoldsBlocks) != 0;
}

// A region is a name for memory that has a row of its own, unless nobody saw that.
bool IsAllocated(const Rows& rows, RowId row) {
  if (rows.IsRegion(row)) return (rows.flags[row] & kRowUnbacked) != 0;
  return !IsSegment(rows, row);
}

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

std::map<int32_t, Amount> AllocatedPeaks(const Trace& trace) {
  const Rows& rows = trace.rows;
  std::map<int32_t, Amount> peaks;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.birth[row] == 0 && IsAllocated(rows, row)) peaks[rows.device[row]].Add(rows.size[row]);
  }
  for (auto& [device, amount] : peaks) amount.NotePeak(0);
  int32_t last_device = INT32_MIN;
  Amount* amount = nullptr;
  for (Step step = 1; step <= trace.last_step(); ++step) {
    const StepRecord record = trace.steps[step - 1];
    if (record.row == kNoRow || !IsAllocated(rows, record.row)) continue;
    const int32_t device = rows.device[record.row];
    if (amount == nullptr || device != last_device) {
      amount = &peaks[device];
      last_device = device;
    }
    if (record.is_death) {
      amount->Remove(rows.size[record.row]);
    } else {
      amount->Add(rows.size[record.row]);
      amount->NotePeak(step);
    }
  }
  return peaks;
}

AllocatedState AllocatedAfter(const Trace& trace, const Categories& categories, int32_t device,
                              Step step) {
  const Rows& rows = trace.rows;
  AllocatedState state;
  absl::flat_hash_map<Key, Group> groups;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!rows.HeldAfter(row, step) || rows.device[row] != device) continue;
    const uint64_t bytes = rows.size[row];
    if (IsSegment(rows, row)) state.reserved_bytes += bytes;
    if (!IsAllocated(rows, row)) continue;
    Group& group = groups[{rows.stack[row], rows.forward_stack[row], rows.heap[row]}];
    group.use.bytes += bytes;
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
