#include "analysis/trace/stream_waits.h"

#include <algorithm>
#include <iterator>

namespace gmt::analysis {
namespace {

// Bounds the events remembered for a thread that records events but never frees. No block is used
// by as many streams.
constexpr size_t kMaxRemembered = 1024;

}  // namespace

void StreamWaits::OnRecord(uint32_t thread, uint64_t site, uint64_t event, uint64_t stream,
                           Now now) {
  OnDone(event, false, now);
  recorded_[event] = {site, stream, kNone};
  std::vector<uint64_t>& own = by_thread_[thread];
  if (own.size() == kMaxRemembered) own.erase(own.begin(), own.begin() + kMaxRemembered / 2);
  own.push_back(event);
}

void StreamWaits::OnDone(uint64_t event, bool by_allocator, Now now) {
  const auto recorded = recorded_.find(event);
  if (recorded == recorded_.end()) return;
  if (by_allocator) confirmed_.insert(recorded->second.site);
  if (recorded->second.awaited == kNone) return;
  Awaited& awaited = awaited_[recorded->second.awaited];
  if (awaited.done.step == kNever) awaited.done = now;
}

void StreamWaits::OnOther(uint32_t thread) {
  if (by_thread_.empty()) return;
  const auto recorded = by_thread_.find(thread);
  if (recorded != by_thread_.end()) recorded->second.clear();
}

void StreamWaits::OnFree(uint32_t thread, RowId row, const Rows& rows) {
  if (by_thread_.empty()) return;
  const auto recorded = by_thread_.find(thread);
  if (recorded == by_thread_.end() || recorded->second.empty()) return;
  Wait wait{row, static_cast<uint32_t>(awaited_.size()), 0, kNotYet};
  for (uint64_t event : recorded->second) {
    Recorded& last = recorded_[event];
    const bool own = (rows.flags[row] & kRowHasStream) != 0 && last.stream == rows.stream[row];
    if (own) continue;
    last.awaited = static_cast<uint32_t>(awaited_.size());
    awaited_.push_back({last.site, kNotYet});
    ++wait.count;
  }
  recorded->second.clear();
  if (wait.count == 0) return;
  pending_[{rows.device[row], rows.address[row]}] = {rows.size[row],
                                                     static_cast<uint32_t>(waits_.size())};
  waits_.push_back(wait);
}

void StreamWaits::OnReuse(int32_t device, uint64_t address, uint64_t size, Now now) {
  auto it = pending_.upper_bound({device, address});
  if (it != pending_.begin()) {
    const auto before = std::prev(it);
    const auto& [place, waiting] = *before;
    if (place.first == device && address - place.second < waiting.first) it = before;
  }
  while (it != pending_.end() && it->first.first == device && it->first.second < address + size) {
    Wait& wait = waits_[it->second.second];
    if (wait.reused.step == kNever) wait.reused = now;
    it = pending_.erase(it);
  }
}

// Returns when a wait with an event that counts was completed.
StreamWaits::Now StreamWaits::CompletionOf(const Wait& wait) const {
  Now done;
  for (uint32_t i = wait.first; i < wait.first + wait.count; ++i) {
    if (Counts(awaited_[i])) done = std::max(done, awaited_[i].done);
  }
  return std::min(done, wait.reused);
}

void StreamWaits::Apply(Trace& trace) const {
  Rows& rows = trace.rows;
  std::vector<std::pair<Now, RowId>> ends;
  for (const Wait& wait : waits_) {
    // Skips frees that were undone or whose completion is in the recording.
    if (rows.death[wait.row] == kNever || (rows.flags[wait.row] & kRowAwaited) != 0) continue;
    const auto first = awaited_.begin() + wait.first;
    if (std::none_of(first, first + wait.count, [this](const Awaited& a) { return Counts(a); })) {
      if (confirmed_.empty()) rows.AddFlags(wait.row, kRowMayAwait);
      continue;
    }
    const Now end = CompletionOf(wait);
    rows.AddFlags(wait.row, kRowAwaited);
    rows.SetCompleted(wait.row, end.step);
    if (end.step != kNever) ends.emplace_back(end, wait.row);
  }
  if (ends.empty()) return;
  std::stable_sort(ends.begin(), ends.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<SideEvent> side_events;
  side_events.reserve(trace.side_events.size() + ends.size());
  auto next = trace.side_events.begin();
  for (const auto& [end, row] : ends) {
    const auto before = trace.side_events.begin() + end.side_event;
    side_events.insert(side_events.end(), next, before);
    next = before;
    side_events.push_back({SideEvent::kCompleted, static_cast<uint32_t>(trace.completions.size()),
                           end.step, end.t_ns});
    trace.completions.push_back({row, end.step, end.t_ns, 0});
  }
  side_events.insert(side_events.end(), next, trace.side_events.end());
  trace.side_events = std::move(side_events);
}

}  // namespace gmt::analysis
