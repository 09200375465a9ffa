// TraceBuilder (analysis/trace/trace_builder.h): a framework's allocator - when its blocks may be
// reused, whether its totals match ours, and its driver calls.

#include <algorithm>
#include <vector>

#include "analysis/trace/trace_builder.h"

namespace gmt::analysis {
namespace {

// Driver calls kept before a framework's first block is seen: its first calls precede that block.
constexpr size_t kCallsBeforeBlocks = 1024;
// How many calls back a return's call is searched when its duration is reported.
constexpr size_t kCallsInFlight = 64;

bool IsDeviceMemory(Memory memory) {
  return memory == DEVICE || memory == VMM || memory == MEMORY_UNSPECIFIED;
}

}  // namespace

StreamWaits::Now TraceBuilder::Now(int64_t t_ns) const {
  return {trace_.last_step(), static_cast<uint32_t>(trace_.side_events.size()), t_ns};
}

void TraceBuilder::BeforeBlockEvent(const format::Event& event) {
  if (event.memory == REGION) return;
  has_blocks_ = true;
  if (states_completions_) last_freed_.erase(static_cast<int32_t>(event.device));
  if (event.kind != ALLOC) return;
  if (waits_.has_pending())
    waits_.OnReuse(static_cast<int32_t>(event.device), event.address, event.size, Now(event.t_ns));
  const auto awaiting = states_completions_ ? awaiting_.find(LikeliestPlaceOf(event, HeapOf(event)))
                                            : awaiting_.end();
  if (awaiting == awaiting_.end()) return;
  Complete(awaiting->second, event.t_ns);
  awaiting_.erase(awaiting);
}

void TraceBuilder::OnBlockBorn(RowId row, const format::Event& event) {
  if (event.memory == REGION) return;
  if (states_completions_) last_freed_.erase(trace_.rows.device[row]);
  waits_.OnOther(event.thread);
  if ((trace_.rows.flags[row] & kRowReportedBefore) == 0) {
    reconciler_.Compare(trace_.rows.heap[row], event);
  } else {
    // It is reported after recording began: the allocator's totals included it before our sums did.
    reconciler_.ForgetComparisons();
  }
}

void TraceBuilder::OnBlockFreed(RowId row, uint32_t heap, const format::Event& event) {
  const bool is_region = event.memory == REGION;
  if (!is_region) reconciler_.Compare(heap, event);
  if (row == kNoRow) return is_region ? void() : waits_.OnOther(event.thread);
  Rows& rows = trace_.rows;
  if (event.stack != 0) {
    GrowTo(rows.free_stack_column, size_t{row} + 1);
    rows.free_stack_column[row] = event.stack;
  }
  if (is_region) return;
  if (!states_completions_) return waits_.OnFree(event.thread, row, rows);
  AwaitCompletion(row, heap, event);
}

void TraceBuilder::AwaitCompletion(RowId row, uint32_t heap, const format::Event& event) {
  Rows& rows = trace_.rows;
  rows.SetCompleted(row, kNever);
  rows.AddFlags(row, kRowAwaited);
  awaiting_[LikeliestPlaceOf(event, heap)] = row;
  last_freed_[rows.device[row]] = row;
}

void TraceBuilder::OnBlockFreeDone(const format::Event& event) {
  if (Failed(event)) return;
  if (!states_completions_) ExpectCompletions();
  const auto awaiting = awaiting_.find(LikeliestPlaceOf(event, HeapOf(event)));
  if (awaiting == awaiting_.end()) return;
  const RowId row = awaiting->second;
  awaiting_.erase(awaiting);
  const auto last = last_freed_.find(trace_.rows.device[row]);
  // A free completed at once has the stack of its free; PyTorch completes waiting frees in a later
  // allocation.
  const bool at_once =
      last != last_freed_.end() && last->second == row && event.stack == trace_.rows.FreeStack(row);
  if (!at_once) return Complete(row, event.t_ns, event.stack);
  last_freed_.erase(last);
  trace_.rows.RemoveFlags(row, kRowAwaited);
  trace_.rows.SetCompleted(row, trace_.rows.death[row]);
}

// Called at the first completion in a recording that reports completions: blocks freed before
// without one, whose address was not reused, are still waiting.
void TraceBuilder::ExpectCompletions() {
  states_completions_ = true;
  Rows& rows = trace_.rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.IsBlock(row) && rows.death[row] != kNever) {
      awaiting_[{rows.address[row], kFirstBlockSpace + rows.heap[row]}] = row;
    }
  }
  absl::erase_if(awaiting_, [this](const auto& entry) { return held_.Contains(entry.first); });
  for (const auto& [place, row] : awaiting_) {
    rows.SetCompleted(row, kNever);
    rows.AddFlags(row, kRowAwaited);
    if (rows.death[row] == trace_.last_step()) last_freed_[rows.device[row]] = row;
  }
}

void TraceBuilder::Complete(RowId row, int64_t t_ns, uint32_t stack) {
  trace_.rows.SetCompleted(row, trace_.last_step());
  AddSideEvent(SideEvent::kCompleted, trace_.completions.size(), t_ns);
  trace_.completions.push_back({row, trace_.last_step(), t_ns, stack});
}

void TraceBuilder::Count(RowId row) {
  const Rows& rows = trace_.rows;
  if (counted_[row] || rows.IsRegion(row)) return;
  counted_[row] = true;
  const uint32_t heap = rows.heap[row];
  if (heap > kHostHeap) {
    reconciler_.AddBlock(heap, rows.device[row], rows.size[row]);
  } else if ((rows.flags[row] & kRowHoldsBlocks) != 0) {
    reconciler_.AddSegment(rows.device[row], rows.size[row]);
  }
}

void TraceBuilder::Discount(RowId row) {
  if (!counted_[row]) return;
  counted_[row] = false;
  const Rows& rows = trace_.rows;
  const uint32_t heap = rows.heap[row];
  if (heap > kHostHeap) {
    reconciler_.RemoveBlock(heap, rows.device[row], rows.size[row]);
  } else if ((rows.flags[row] & kRowHoldsBlocks) != 0) {
    reconciler_.RemoveSegment(rows.device[row], rows.size[row]);
  }
}

void TraceBuilder::NoteDriverCall(const format::Event& event, RowId row) {
  if (!IsDeviceMemory(event.memory) || HeapOf(event) != kDriverHeap) return;
  std::vector<DriverCall>& calls = trace_.driver_calls;
  if (!has_blocks_ && calls.size() >= 2 * kCallsBeforeBlocks) {
    calls.erase(calls.begin(), calls.end() - kCallsBeforeBlocks);
  }
  DriverCall call;
  call.kind = Failed(event) ? ALLOC_FAILED : event.kind;
  call.row = row;
  call.step = trace_.last_step();
  call.t_ns = event.t_ns;
  call.duration_ns = event.duration_ns;
  call.address = event.address;
  call.size = event.size != 0 || row == kNoRow ? event.size : trace_.rows.size[row];
  call.stack = event.stack;
  call.thread = event.thread;
  call.device = row != kNoRow ? trace_.rows.device[row] : static_cast<int32_t>(event.device);
  call.failed = static_cast<uint32_t>(trace_.failed.size());
  calls.push_back(call);
}

// A return's duration is reported with its end. A call that the driver refused had no effect.
void TraceBuilder::NoteDuration(const format::Event& done) {
  std::vector<DriverCall>& calls = trace_.driver_calls;
  const size_t oldest = calls.size() - std::min(calls.size(), kCallsInFlight);
  for (size_t i = calls.size(); i > oldest; --i) {
    DriverCall& call = calls[i - 1];
    if (!call.is_return() || call.thread != done.thread || call.address != done.address) continue;
    if (Failed(done)) {
      calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(i - 1));
    } else {
      call.duration_ns = done.duration_ns;
    }
    return;
  }
}

}  // namespace gmt::analysis
