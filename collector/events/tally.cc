#include "collector/events/tally.h"

#include <algorithm>

#include "collector/events/event_translator.h"
#include "format/definitions_builder.h"

namespace gmt::collector {
namespace {

using session::Kind;
using session::LiveValue;
using session::Memory;

// Memory owned by another process or API is counted where it was created.
bool IsForeign(Memory memory) {
  return memory == Memory::kIpc || memory == Memory::kExternal || memory == Memory::kGraphics ||
         memory == Memory::kMulticast;
}

bool IsMemory(const LiveValue& live) {
  const bool taken =
      live.kind == Kind::kAlloc || live.kind == Kind::kCreate || live.kind == Kind::kRegister;
  return taken && !IsForeign(live.memory);
}

}  // namespace

bool IsDriverHeap(const HeapCounts& heap) {
  static const char* const driver = HeapNameOf(Memory::kDevice);
  return heap.heap == driver;
}

uint32_t Tally::FindOrAddHeap(uint8_t device, Memory memory) {
  const char* const name = HeapNameOf(memory);
  for (uint32_t index = 0; index < heaps_.size(); ++index) {
    if (heaps_[index].device == device && heaps_[index].heap == name) return index;
  }
  HeapCounts heap;
  heap.device = device;
  heap.heap = name;
  heaps_.push_back(heap);
  peaks_.push_back(0);
  return static_cast<uint32_t>(heaps_.size() - 1);
}

SiteCounts& Tally::CountsOf(uint32_t heap, uint32_t index) {
  Site& site = sites_[index];
  if (site.peak != peaks_[heap]) {
    site.counts.bytes_at_peak = site.counts.live_bytes;
    site.counts.count_at_peak = site.counts.live_count;
    site.peak = peaks_[heap];
  }
  return site.counts;
}

uint32_t Tally::SiteFor(uint32_t heap, const LiveValue& live) {
  const auto found = site_index_.find({heap, live.stack, live.forward_stack});
  return found != site_index_.end() ? found->second : NewSite(heap, live);
}

uint32_t Tally::NewSite(uint32_t heap, const LiveValue& live) {
  SiteKey key = {heap, live.stack, live.forward_stack};
  if (site_index_.size() >= max_sites_) {
    key = {heap, kOtherStack, 0};
    const auto other = site_index_.find(key);
    if (other != site_index_.end()) return other->second;
  }
  const auto index = static_cast<uint32_t>(sites_.size());
  site_index_.emplace(key, index);
  Site& site = sites_.emplace_back();
  site.counts.heap = heap;
  site.counts.stack = key.stack;
  site.counts.forward_stack = key.forward_stack;
  site.peak = peaks_[heap];
  return index;
}

void Tally::NoteAllocated(HeapCounts* heap) const {
  uint64_t allocated = heap->live_bytes;
  if (IsDriverHeap(*heap)) allocated -= std::min(allocated, segments_.OnDevice(heap->device).now);
  heap->allocated_at_most = std::max(heap->allocated_at_most, allocated);
}

void Tally::BeginInterval() {
  for (HeapCounts& heap : heaps_) {
    heap.allocated_at_most = 0;
    NoteAllocated(&heap);
  }
}

// Stores the index of the site + 1 in the allocation. It stays valid, because sites are never
// removed.
void Tally::Raise(LiveModelEntry* live, bool is_new) {
  const uint32_t index = HeapIndex(live->device, live->memory);
  if (live->site == 0) live->site = SiteFor(index, *live) + 1;
  SiteCounts& counts = CountsOf(index, live->site - 1);
  HeapCounts& heap = heaps_[index];
  counts.live_bytes += live->size, heap.live_bytes += live->size;
  NoteAllocated(&heap);
  ++counts.live_count, ++heap.live_count;
  if (is_new) {
    ++counts.allocations, ++heap.allocations;
    counts.allocated_bytes += live->size, heap.allocated_bytes += live->size;
  } else {
    --counts.frees, --heap.frees;
  }
  if (heap.live_bytes <= heap.peak_bytes) return;
  heap.peak_bytes = heap.live_bytes;
  heap.peak_count = heap.live_count;
  heap.peak_ns = live->time_ns;
  ++peaks_[index];
}

void Tally::Lower(const LiveModelEntry& live) {
  const uint32_t index = HeapIndex(live.device, live.memory);
  SiteCounts& counts = CountsOf(index, live.site - 1);
  HeapCounts& heap = heaps_[index];
  counts.live_bytes -= live.size, heap.live_bytes -= live.size;
  --counts.live_count, --heap.live_count;
  ++counts.frees, ++heap.frees;
}

void Tally::OnBorn(const Place& place, LiveModelEntry* live) {
  if (live->kind == Kind::kMap) {
    const auto physical = physical_.find(live->stream);
    if (physical != physical_.end()) ++physical->second.mappings;
    return segments_.OnBorn(place, *live);
  }
  if (live->kind == Kind::kReserve) return segments_.OnBorn(place, *live);
  if (!IsMemory(*live)) return;
  segments_.OnBorn(place, *live);
  if (live->kind != Kind::kCreate) return Raise(live, /*is_new=*/true);
  // A handle that is reused: the mappings of its former memory are gone.
  const auto [it, is_new] = physical_.try_emplace(place.value);
  if (!is_new) Lower(it->second.live);
  Raise(live, /*is_new=*/true);
  it->second = {*live};
}

void Tally::OnEnded(const Place& place, const LiveModelEntry& live) {
  segments_.OnEnded(place, live);
  if (live.kind == Kind::kMap) {
    const auto physical = physical_.find(live.stream);
    if (physical == physical_.end() || physical->second.mappings == 0) return;
    if (--physical->second.mappings > 0 || !physical->second.released) return;
    Lower(physical->second.live);
    physical_.erase(physical);
    return;
  }
  if (!IsMemory(live)) return;
  if (live.kind == Kind::kCreate) {
    const auto physical = physical_.find(place.value);
    if (physical == physical_.end()) return;
    physical->second.released = true;
    // It is still counted, but no longer known to hold blocks.
    if (physical->second.mappings > 0)
      return NoteAllocated(&heaps_[HeapIndex(live.device, live.memory)]);
    physical_.erase(physical);
  }
  Lower(live);
}

void Tally::OnRestored(const Place& place, LiveModelEntry* live) {
  if (live->kind == Kind::kMap || live->kind == Kind::kReserve) return OnBorn(place, live);
  if (!IsMemory(*live)) return;
  segments_.OnBorn(place, *live);
  if (live->kind == Kind::kCreate) {
    const auto [it, was_gone] = physical_.try_emplace(place.value, Physical{*live});
    it->second.released = false;
    if (!was_gone) return;
  }
  Raise(live, /*is_new=*/false);
}

void Tally::Note(const session::Record& record) {
  if (record.kind == Kind::kAllocFailed) ++heaps_[HeapIndex(record.device, record.memory)].failed;
  if (record.memory != Memory::kBlock || record.total_reserved == 0) return;
  HeapCounts& heap = heaps_[HeapIndex(record.device, record.memory)];
  heap.reported_allocated = record.total_allocated;
  heap.reported_reserved = record.total_reserved;
  heap.peak_reported_reserved = std::max(heap.peak_reported_reserved, record.total_reserved);
}

SiteCounts Tally::site(size_t index) const {
  const Site& site = sites_[index];
  SiteCounts counts = site.counts;
  if (site.peak != peaks_[counts.heap]) {
    counts.bytes_at_peak = counts.live_bytes;
    counts.count_at_peak = counts.live_count;
  }
  return counts;
}

std::vector<SiteCounts> Tally::Sites() const {
  std::vector<SiteCounts> sites;
  sites.reserve(sites_.size());
  for (size_t index = 0; index < sites_.size(); ++index) sites.push_back(site(index));
  return sites;
}

}  // namespace gmt::collector
