#include "viewer/questions/event_list.h"

#include <algorithm>

namespace gmt::viewer {

using analysis::AllocatorAction;
using analysis::SideEvent;
using analysis::Step;

EventList::EventList(const analysis::Examination& examination, int32_t device,
                     uint32_t steps_per_chunk)
    : trace_(examination.trace()), device_(device), steps_per_chunk_(steps_per_chunk) {
  for (const AllocatorAction& action : examination.allocator_actions()) {
    if (action.device == device && action.kind != AllocatorAction::kOom) actions_.push_back(action);
  }
  std::stable_sort(
      actions_.begin(), actions_.end(),
      [](const AllocatorAction& a, const AllocatorAction& b) { return a.step < b.step; });
  const size_t chunks = trace_.last_step() / steps_per_chunk_ + 1;
  before_.resize(chunks + 1);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    Counts& counts = before_[chunk + 1];
    counts = before_[chunk];
    Walk(chunk, [&](const Entry& entry) {
      ++counts[static_cast<size_t>(entry.kind)];
      return true;
    });
  }
}

uint64_t EventList::Sum(const Counts& counts, uint32_t kinds) {
  uint64_t sum = 0;
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    if ((kinds >> kind & 1) != 0) sum += counts[kind];
  }
  return sum;
}

bool EventList::StepEntry(Step step, Entry* entry) const {
  const analysis::StepRecord record = trace_.steps[step - 1];
  *entry = {step, EventKind::kFreeRefused, record.row, record.t_ns};
  if (record.row == analysis::kNoRow) return true;  // its device is unknown
  const analysis::Rows& rows = trace_.rows;
  if (rows.device[record.row] != device_) return false;
  const bool is_segment = rows.heap[record.row] == analysis::kDriverHeap &&
                          (rows.flags[record.row] & analysis::kRowHoldsBlocks) != 0;
  if (is_segment) {
    entry->kind = record.is_death ? EventKind::kSegmentFree : EventKind::kSegmentAlloc;
  } else if (!record.is_death) {
    entry->kind = EventKind::kAlloc;
  } else {
    // A wait may end before the next event.
    const bool waits = (rows.flags[record.row] & analysis::kRowAwaited) != 0 ||
                       rows.Completed(record.row) != rows.death[record.row];
    entry->kind = waits ? EventKind::kFreeRequested : EventKind::kFree;
  }
  return true;
}

bool EventList::SideEntry(const SideEvent& side, Entry* entry) const {
  *entry = {side.step, EventKind::kMap, side.index, side.t_ns};
  switch (side.kind) {
    case SideEvent::kMap:
      return trace_.mappings[side.index].device == device_;
    case SideEvent::kUnmap:
      entry->kind = EventKind::kUnmap;
      return trace_.mappings[side.index].device == device_;
    case SideEvent::kFailed:
      entry->kind = EventKind::kFailed;
      return trace_.failed[side.index].device == device_;
    case SideEvent::kCompleted:
      entry->kind = EventKind::kFreeCompleted;
      return trace_.rows.device[trace_.completions[side.index].row] == device_;
    case SideEvent::kMark:
      entry->kind = EventKind::kMark;
      return true;
    case SideEvent::kSnapshot:
      entry->kind = EventKind::kSnapshot;
      return true;
    case SideEvent::kAction:
      entry->kind = EventKind::kRecordedAction;
      return trace_.actions[side.index].device.value_or(device_) == device_;
    case SideEvent::kSample:
    case SideEvent::kRangeBegin:
    case SideEvent::kRangeEnd:
      return false;  // the timeline shows these over time
  }
  return false;
}

template <typename Visit>
void EventList::Walk(size_t chunk, Visit visit) const {
  // Step 0 is what happened before the first birth or death.
  const auto first = static_cast<Step>(chunk * steps_per_chunk_);
  const uint64_t end =
      std::min<uint64_t>(uint64_t{first} + steps_per_chunk_, uint64_t{trace_.last_step()} + 1);
  auto side = std::lower_bound(trace_.side_events.begin(), trace_.side_events.end(), first,
                               [](const SideEvent& event, Step step) { return event.step < step; });
  auto action =
      std::lower_bound(actions_.begin(), actions_.end(), first,
                       [](const AllocatorAction& one, Step step) { return one.step < step; });
  Entry entry;
  for (uint64_t at = first; at < end; ++at) {
    const auto step = static_cast<Step>(at);
    if (step > 0 && StepEntry(step, &entry) && !visit(entry)) return;
    for (; side != trace_.side_events.end() && side->step == step; ++side) {
      if (SideEntry(*side, &entry) && !visit(entry)) return;
    }
    for (; action != actions_.end() && action->step == step; ++action) {
      const auto index = static_cast<uint32_t>(action - actions_.begin());
      if (!visit({step, EventKind::kAction, index, action->t_ns})) return;
    }
  }
}

std::vector<EventList::Entry> EventList::Page(uint32_t kinds, uint64_t offset,
                                              uint32_t limit) const {
  std::vector<Entry> page;
  // The last chunk with at most `offset` entries before it.
  const auto found = std::upper_bound(
      before_.begin(), before_.end(), offset,
      [kinds](uint64_t wanted, const Counts& counts) { return wanted < Sum(counts, kinds); });
  auto chunk = static_cast<size_t>(found - before_.begin()) - 1;
  if (chunk + 1 == before_.size()) return page;
  uint64_t skip = offset - Sum(before_[chunk], kinds);
  for (; chunk + 1 < before_.size() && page.size() < limit; ++chunk) {
    if (Sum(before_[chunk], kinds) == Sum(before_[chunk + 1], kinds)) continue;
    Walk(chunk, [&](const Entry& entry) {
      if ((kinds >> static_cast<size_t>(entry.kind) & 1) == 0) return true;
      if (skip > 0) {
        --skip;
        return true;
      }
      page.push_back(entry);
      return page.size() < limit;
    });
  }
  return page;
}

uint64_t EventList::Position(uint32_t kinds, uint32_t event) const {
  const size_t chunk = std::min<size_t>(event / steps_per_chunk_, before_.size() - 2);
  uint64_t before = Sum(before_[chunk], kinds);
  bool has_entry = false;
  Walk(chunk, [&](const Entry& entry) {
    if (entry.event > event) return false;
    if ((kinds >> static_cast<size_t>(entry.kind) & 1) == 0) return true;
    has_entry = entry.event == event;
    if (!has_entry) ++before;
    return !has_entry;
  });
  return has_entry || before == 0 ? before : before - 1;
}

}  // namespace gmt::viewer
