#include "analysis/report/all_time.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "format/columns.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {
namespace {

constexpr uint32_t kOtherSites = 1;  // bit of Sites.flags

AllTimeHeap HeapBefore(const HeapCounts& counts) {
  AllTimeHeap heap;
  heap.device = DeviceOf(counts);
  heap.heap = counts.heap();
  heap.allocations = counts.allocations();
  heap.frees = counts.frees();
  heap.peak_bytes = counts.peak_bytes();
  heap.peak_t_ns = counts.peak_t_ns();
  heap.peak_is_before = true;
  if (counts.has_peak_reported_reserved())
    heap.peak_reserved_bytes = counts.peak_reported_reserved();
  return heap;
}

AllTimeRow RowOf(const Sites& sites, int index, StackTexts& stacks) {
  AllTimeRow row;
  const uint32_t stack = format::ColumnAt(sites.stack(), index);
  const uint32_t forward = format::ColumnAt(sites.forward_stack(), index);
  row.id = absl::StrCat("stack/", stack);
  if (forward != 0) absl::StrAppend(&row.id, "+", forward);
  if ((format::ColumnAt(sites.flags(), index) & kOtherSites) != 0) row.id = "others";
  row.bytes_at_peak = format::ColumnAt(sites.bytes_at_peak(), index);
  row.count_at_peak = format::ColumnAt(sites.count_at_peak(), index);
  row.allocations = format::ColumnAt(sites.allocations(), index);
  row.allocated_bytes = format::ColumnAt(sites.allocated_bytes(), index);
  row.frames = stacks.Frames(stack);
  return row;
}

void AddRows(const Aggregates& before, StackTexts& stacks, std::vector<AllTimeHeap>* heaps) {
  const Sites& sites = before.sites();
  // A damaged count may claim rows that no column has.
  const int count = std::min(static_cast<int>(std::min<uint32_t>(sites.count(), INT32_MAX)),
                             sites.allocations_size() + (1 << 16));
  for (int index = 0; index < count; ++index) {
    const uint32_t heap = format::ColumnAt(sites.heap(), index);
    if (heap >= heaps->size() || format::ColumnAt(sites.bytes_at_peak(), index) == 0) continue;
    (*heaps)[heap].rows.push_back(RowOf(sites, index, stacks));
  }
}

void AddKept(const Trace& trace, const Replay& replay, std::vector<AllTimeHeap>* heaps) {
  for (const auto& [key, totals] : replay.heaps()) {
    const auto device = key.first;
    const std::string& name = trace.heaps[key.second];
    auto heap = std::find_if(heaps->begin(), heaps->end(), [&](const AllTimeHeap& h) {
      return h.device == device && h.heap == name;
    });
    if (heap == heaps->end()) {
      AllTimeHeap& fresh = heaps->emplace_back();
      fresh.device = device;
      fresh.heap = name;
      heap = heaps->end() - 1;
    }
    heap->allocations += totals.allocations;
    heap->frees += totals.frees;
    // Memory already held when the kept events begin is not their peak.
    if (totals.bytes.peak <= heap->peak_bytes) continue;
    heap->peak_bytes = totals.bytes.peak;
    heap->peak_t_ns = trace.TimeOf(totals.bytes.peak_step);
    heap->peak_is_before = false;
  }
}

}  // namespace

int32_t DeviceOf(const HeapCounts& counts) {
  return counts.has_device() ? static_cast<int32_t>(counts.device()) : kHostDevice;
}

std::optional<AllTime> FindAllTime(const Examination& examination) {
  const Trace& trace = examination.trace();
  if (!trace.before) return std::nullopt;
  AllTime all;
  all.details_from_t_ns = trace.before->t_ns();
  all.events_before = trace.before->events();
  for (const HeapCounts& counts : trace.before->heaps()) all.heaps.push_back(HeapBefore(counts));
  AddRows(*trace.before, examination.stacks(), &all.heaps);
  AddKept(trace, examination.replay(), &all.heaps);
  for (AllTimeHeap& heap : all.heaps) {
    if (!heap.peak_is_before) heap.rows.clear();
    std::sort(heap.rows.begin(), heap.rows.end(), [](const AllTimeRow& a, const AllTimeRow& b) {
      return std::tie(b.bytes_at_peak, a.id) < std::tie(a.bytes_at_peak, b.id);
    });
  }
  std::stable_sort(all.heaps.begin(), all.heaps.end(),
                   [](const AllTimeHeap& a, const AllTimeHeap& b) {
                     return static_cast<uint32_t>(a.device) < static_cast<uint32_t>(b.device);
                   });
  return all;
}

}  // namespace gmt::analysis
