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

}  // namespace

bool IsAllocated(const Rows& rows, RowId row) {
  if (rows.IsRegion(row)) return (rows.flags[row] & kRowUnbacked) != 0;
  return rows.heap[row] > kHostHeap || (rows.flags[row] & kRowHoldsBlocks) == 0;
}

Replay::Replay(const Trace& trace, Window window) : trace_(trace) {
  const Rows& rows = trace.rows;
  uint32_t max_stack = 0;
  for (RowId row = 0; row < rows.count(); ++row) max_stack = std::max(max_stack, rows.stack[row]);
  stacks_.resize(size_t{max_stack} + 1);
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.birth[row] == 0) Apply(row, false, 0);
  }
  if (window.from_ns <= 0) Enter(0);
  for (Step step = 1; step <= trace.last_step(); ++step) {
    const StepRecord record = trace.steps[step - 1];
    if (record.t_ns > window.to_ns) break;
    if (!inside_ && record.t_ns >= window.from_ns) Enter(step - 1);
    if (record.row != kNoRow) Apply(record.row, record.is_death, step);
    end_ = step;
  }
  if (!inside_) Enter(end_);
}

Replay::Counters Replay::CountersOf(RowId row) {
  const HeapKey key{trace_.rows.device[row], trace_.rows.heap[row]};
  if (key != last_key_ || last_heap_ == nullptr) {
    last_key_ = key;
    last_heap_ = &heaps_[key];
    last_device_ = &devices_[key.first];
  }
  return {last_heap_, last_device_, &stacks_[trace_.rows.stack[row]]};
}

void Replay::Apply(RowId row, bool is_death, Step step) {
  const Counters counters = CountersOf(row);
  const uint64_t bytes = trace_.rows.size[row];
  const uint8_t flags = trace_.rows.flags[row];
  const bool is_block = trace_.rows.heap[row] > kHostHeap;
  const auto move = [&](Amount& amount) { is_death ? amount.Remove(bytes) : amount.Add(bytes); };
  move(counters.heap->bytes);
  move(*counters.stack);
  if (!is_block || (flags & kRowUnbacked) != 0) move(counters.device->bytes);
  if ((flags & kRowHoldsBlocks) != 0) move(counters.device->segments);
  if (IsAllocated(trace_.rows, row)) move(counters.device->allocated);
  if (is_block && !trace_.rows.IsRegion(row)) counters.device->blocks += is_death ? -bytes : bytes;
  if (!inside_) return;
  if (step > 0) ++(is_death ? counters.heap->frees : counters.heap->allocations);
  NotePeaks(counters, step);
}

void Replay::NotePeaks(const Counters& counters, Step step) const {
  counters.heap->bytes.NotePeak(step);
  counters.stack->NotePeak(step);
  counters.device->segments.NotePeak(step);
  counters.device->allocated.NotePeak(step);
  NoteDevicePeak(*counters.device, step);
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
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    if (trace.rows.HeldAfter(row, step)) held.push_back(row);
  }
  return held;
}

Step StepAt(const Trace& trace, int64_t t_ns) {
  Step step = 0;
  while (step < trace.last_step() && trace.steps.TimeOf(step) <= t_ns) ++step;
  return step;
}

}  // namespace gmt::analysis
