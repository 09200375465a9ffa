#include "analysis/examination/replay.h"

#include <algorithm>

namespace gmt::analysis {
namespace {

void NoteDevicePeak(DeviceTotals& device, Step step) {
  Amount& bytes = device.bytes;
  const bool more = bytes.live > bytes.peak;
  const bool fuller = bytes.live == bytes.peak && device.blocks > device.blocks_at_peak;
  if (!more && !fuller) return;
  bytes.peak = bytes.live;
  bytes.peak_step = step;
  device.blocks_at_peak = device.blocks;
}

bool IsAllocated(bool is_region, uint16_t heap, uint16_t flags) {
  if (is_region) return (flags & kRowUnbacked) != 0;
  return heap > kHostHeap || (flags & kRowHoldsBlocks) == 0;
}

}  // namespace

bool IsAllocated(const Rows& rows, RowId row) {
  return IsAllocated(rows.IsRegion(row), rows.heap[row], rows.flags[row]);
}

bool IsAllocated(const RowKind& kind) {
  return IsAllocated(kind.is_region(), kind.heap, kind.flags);
}

Replay::Replay(const Trace& trace, const RowKinds& kinds, Window window)
    : trace_(trace), counters_(kinds.all().size()) {
  const Rows& rows = trace.rows;
  const RowId count = rows.count();
  uint32_t max_stack = 0;
  for (RowId row = 0; row < count; ++row) max_stack = std::max(max_stack, rows.stack[row]);
  stacks_.resize(size_t{max_stack} + 1);
  for (const RowId row : kinds.from_before()) Apply(row, kinds, false, 0);
  if (window.from_ns <= 0) Enter(0);
  const Step last_step = trace.last_step();
  for (Step step = 1; step <= last_step; ++step) {
    const StepRecord record = trace.steps[step - 1];
    if (record.t_ns > window.to_ns) break;
    if (!inside_ && record.t_ns >= window.from_ns) Enter(step - 1);
    if (record.row != kNoRow) Apply(record.row, kinds, record.is_death, step);
    end_ = step;
  }
  if (!inside_) Enter(end_);
}

Replay::Counters Replay::CountersOf(const RowKind& kind) {
  const bool is_framework = kind.heap > kHostHeap;
  Counters counters;
  counters.heap = &heaps_[{kind.device, kind.heap}];
  counters.device = &devices_[kind.device];
  counters.is_device_bytes = !is_framework || kind.Has(kRowUnbacked);
  counters.is_segment = kind.Has(kRowHoldsBlocks);
  counters.is_allocated = IsAllocated(kind);
  counters.is_block = kind.is_block();
  return counters;
}

void Replay::Apply(RowId row, const RowKinds& kinds, bool is_death, Step step) {
  const uint32_t kind = kinds.NumberOf(row);
  Counters& of_kind = counters_[kind];
  if (of_kind.heap == nullptr) of_kind = CountersOf(kinds.all()[kind]);
  HeapTotals& heap = *of_kind.heap;
  DeviceTotals& device = *of_kind.device;
  Amount& stack = stacks_[trace_.rows.stack[row]];
  const uint64_t size = trace_.rows.size[row];
  const uint64_t change = is_death ? -size : size;
  heap.bytes.Add(change);
  stack.Add(change);
  if (of_kind.is_device_bytes) device.bytes.Add(change);
  if (of_kind.is_segment) device.segments.Add(change);
  if (of_kind.is_allocated) device.allocated.Add(change);
  if (of_kind.is_block) device.blocks += change;
  if (!inside_) return;
  if (step > 0) ++(is_death ? heap.frees : heap.allocations);
  heap.bytes.NotePeak(step);
  stack.NotePeak(step);
  device.segments.NotePeak(step);
  device.allocated.NotePeak(step);
  NoteDevicePeak(device, step);
}

// The state at the beginning of the window is one of its states.
void Replay::Enter(Step step) {
  inside_ = true;
  for (auto& [key, heap] : heaps_) heap.bytes.NotePeak(step);
  for (auto& [device, totals] : devices_) {
    totals.segments.NotePeak(step);
    totals.allocated.NotePeak(step);
    NoteDevicePeak(totals, step);
  }
  for (Amount& stack : stacks_) stack.NotePeak(step);
}

std::vector<RowId> HeldAfter(const Trace& trace, Step step) {
  std::vector<RowId> held;
  const Rows& rows = trace.rows;
  const RowId count = rows.count();
  for (RowId row = 0; row < count; ++row) {
    if (rows.death[row] > step && rows.birth[row] <= step) held.push_back(row);
  }
  return held;
}

Step StepAt(const Trace& trace, int64_t t_ns) {
  Step step = 0;
  while (step < trace.last_step() && trace.steps.TimeOf(step) <= t_ns) ++step;
  return step;
}

}  // namespace gmt::analysis
