#include "analysis/trace/held_memory.h"

#include <algorithm>
#include <iterator>

namespace gmt::analysis {

using format::Event;

// ---- Memory

HeldId HeldMemory::Alloc(const Event& event, uint32_t heap, Listener& listener) {
  if (Failed(event) || IsForeign(event.memory)) return kNoHeld;
  const MemoryPlace place = LikeliestPlaceOf(event, heap);
  const auto [at, is_new] = held_.try_emplace(place);
  if (!is_new) {
    const Held old = at->second;
    if (listener.IsBirthOf(old.id, event)) {
      if (place.is_block()) Backed(place, old, event, listener);
      return old.id;
    }
    if (place.space == kPhysicalSpace) ForgetPhysical(old.id);
    EndHeld(place, old, End::kFreeLost, event, listener);
  }
  if (!place.is_block()) freed_.erase(place);
  Held& held = at->second;
  SetHeld(event, place, listener.OnBorn(event, place), &held);
  if (place.is_block()) {
    Backed(place, held, event, listener);
  } else {
    Index(place, held);
  }
  return held.id;
}

void HeldMemory::Hold(const Event& event, const MemoryPlace& place, HeldId id, Listener& listener) {
  Held& held = held_[place];
  SetHeld(event, place, id, &held);
  Index(place, held);
  if (place.is_block()) Backed(place, held, event, listener);
}

// Sets it in place, because a copy would have to wait for the fields just written.
void HeldMemory::SetHeld(const Event& event, const MemoryPlace& place, HeldId id, Held* held) {
  held->size = event.size;
  held->id = id;
  const bool is_host =
      place.space == kHostSpace || (event.memory == REGION && !event.has(format::kHasDevice));
  held->device = is_host ? kHostDevice : static_cast<int32_t>(event.device);
  held->context = event.has(format::kHasContext) ? event.context : kNoContext;
}

void HeldMemory::Index(const MemoryPlace& place, const Held& held) {
  if (place.space == kPhysicalSpace) physical_[held.id] = {};
  if (place.space != kDeviceSpace) return;
  ranges_[{held.device, place.value}] = {held.size, held.id};
  ++ranges_version_;
}

// A region does not change the owner of the memory around it. All known host memory is CUDA's.
void HeldMemory::Backed(const MemoryPlace& place, const Held& held, const Event& event,
                        Listener& listener) {
  bool is_backed = false;
  if (event.memory != REGION) {
    is_backed = MarkSegments(held, place.value, listener);
  } else {
    is_backed = held.device == kHostDevice ||
                AllocationAround(held.device, place.value) != ranges_.end() ||
                IsInMappedMemory(place.value);
  }
  if (!is_backed) listener.OnUnbacked(held.id);
}

HeldId HeldMemory::Free(const Event& event, uint32_t heap, Listener& listener) {
  if (Failed(event) || ValueOf(event) == 0 || IsForeign(event.memory)) return kNoHeld;
  const MemoryPlace likeliest = LikeliestPlaceOf(event, heap);
  auto at = held_.find(likeliest);
  if (at == held_.end()) at = FindOther(event, heap);
  if (at == held_.end()) {
    const HeldId id = listener.OnFreeOfUnknown(event);
    if (id == kNoHeld) return id;
    Held held;
    SetHeld(event, likeliest, id, &held);
    MakeRefusable(likeliest, held);
    return id;
  }
  const auto [place, held] = *at;
  held_.erase(at);
  if (place.is_block()) {
    listener.OnEnded(held.id, End::kFreed, event);
  } else {
    MakeRefusable(place, held);
    Release(place, held, End::kFreed, event, listener);
  }
  return held.id;
}

HeldMemory::HeldByPlace::iterator HeldMemory::FindOther(const Event& event, uint32_t heap) {
  for (const MemoryPlace& place : PlacesOf(event, heap)) {
    const auto at = held_.find(place);
    if (at != held_.end()) return at;
  }
  return held_.end();
}

// Its mappings remain, with unknown physical memory.
void HeldMemory::ForgetPhysical(HeldId id) {
  physical_.erase(id);
  for (auto& [address, mapping] : mappings_) {
    if (mapping.physical == id) mapping.physical = kNoHeld;
  }
}

// Only the driver can refuse a free.
void HeldMemory::MakeRefusable(const MemoryPlace& place, const Held& held) {
  if (place.is_block()) return;
  if (freed_.size() >= kMaxRefusable) freed_.clear();
  freed_[place] = held;
}

// The caller has removed it from held_.
void HeldMemory::Release(const MemoryPlace& place, const Held& held, End end, const Event& event,
                         Listener& listener) {
  if (place.space == kPhysicalSpace) {
    const auto physical = physical_.find(held.id);
    physical->second.released = true;
    if (physical->second.mappings > 0) return;
    physical_.erase(physical);
  }
  EndHeld(place, held, end, event, listener);
}

void HeldMemory::EndHeld(const MemoryPlace& place, const Held& held, End end, const Event& event,
                         Listener& listener) {
  if (place.space == kDeviceSpace) {
    const auto range = ranges_.find({held.device, place.value});
    if (range != ranges_.end() && range->second.id == held.id) {
      ranges_.erase(range);
      ++ranges_version_;
    }
  }
  listener.OnEnded(held.id, end, event);
}

void HeldMemory::FreeDone(const Event& event, uint32_t heap, Listener& listener) {
  for (const MemoryPlace& place : PlacesOf(event, heap)) {
    const auto freed = freed_.find(place);
    if (freed == freed_.end()) continue;
    const Held held = freed->second;
    freed_.erase(freed);
    if (!Failed(event) || held_.contains(place)) return;
    if (const auto physical = physical_.find(held.id); physical != physical_.end()) {
      physical->second.released = false;  // still mapped, so the release had not ended anything
      held_[place] = held;
    } else if (listener.OnRestored(held.id, place)) {
      held_[place] = held;
      Index(place, held);
    }
    return;
  }
}

HeldId HeldMemory::Find(const MemoryPlace& place) const {
  const auto at = held_.find(place);
  return at == held_.end() ? kNoHeld : at->second.id;
}

void HeldMemory::Reset(const Event& event, Listener& listener) {
  const bool by_context = event.has(format::kHasContext), by_device = event.has(format::kHasDevice);
  const auto in_scope = [&](const auto& memory) {
    if (by_context && memory.context != kNoContext) return memory.context == event.context;
    return by_device && memory.device == static_cast<int32_t>(event.device);
  };
  std::vector<uint64_t> unmapped;
  for (const auto& [address, mapping] : mappings_) {
    if (in_scope(mapping)) unmapped.push_back(address);
  }
  std::vector<std::pair<HeldId, MemoryPlace>> blocks, others;
  for (const auto& [place, held] : held_) {
    if (in_scope(held)) (place.is_block() ? blocks : others).emplace_back(held.id, place);
  }
  const auto release = [&](std::vector<std::pair<HeldId, MemoryPlace>>& all) {
    // Hash tables have no defined order; what ends must end in the same order in every run.
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [id, place] : all) {
      const auto at = held_.find(place);
      const Held held = at->second;
      held_.erase(at);
      Release(place, held, End::kContextReset, event, listener);
    }
  };
  // From the inside out: blocks before their segments.
  release(blocks);
  for (const uint64_t address : unmapped) EndMapping(address, End::kContextReset, event, listener);
  release(others);
}

// ---- Addresses and their backing memory

void HeldMemory::Reserve(const Event& event) {
  if (!Failed(event)) reservations_[event.address] = {event.size, false};
}

HeldMemory::Reservations::iterator HeldMemory::ReservationOf(uint64_t address) {
  const auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return reservations_.end();
  const auto at = std::prev(after);
  return address - at->first < at->second.size ? at : reservations_.end();
}

HeldId HeldMemory::Map(const Event& event, Listener& listener) {
  if (Failed(event) || IsForeign(event.memory)) return kNoHeld;
  if (IsMapped(event.address)) EndMapping(event.address, End::kFreeLost, event, listener);
  Mapping mapping;
  mapping.size = event.size;
  mapping.device = static_cast<int32_t>(event.device);
  const auto held = held_.find(MemoryPlace{event.handle, kPhysicalSpace});
  if (event.has(format::kHasHandle) && held != held_.end()) {
    mapping.physical = held->second.id;
    mapping.device = held->second.device;
    mapping.context = held->second.context;
    ++physical_[mapping.physical].mappings;
    const auto reservation = ReservationOf(event.address);
    if (reservation != reservations_.end() && reservation->second.holds_blocks)
      listener.OnSegment(mapping.physical);
  }
  mapping.tag = listener.OnMapped(event, mapping);
  mappings_[event.address] = mapping;
  return mapping.physical;
}

HeldId HeldMemory::Unmap(const Event& event, Listener& listener) {
  if (Failed(event) || IsForeign(event.memory)) return kNoHeld;
  const uint64_t size = std::max<uint64_t>(event.size, 1);
  std::vector<uint64_t> ended;
  HeldId first = kNoHeld;
  for (auto at = mappings_.lower_bound(event.address);
       at != mappings_.end() && at->first - event.address < size; ++at) {
    if (ended.empty()) first = at->second.physical;
    ended.push_back(at->first);
  }
  for (const uint64_t address : ended) EndMapping(address, End::kFreed, event, listener);
  return first;
}

void HeldMemory::EndMapping(uint64_t address, End end, const Event& event, Listener& listener) {
  const auto at = mappings_.find(address);
  const Mapping mapping = at->second;
  mappings_.erase(at);
  const auto physical = physical_.find(mapping.physical);
  if (physical != physical_.end() && --physical->second.mappings == 0 &&
      physical->second.released) {
    physical_.erase(physical);
    listener.OnEnded(mapping.physical, End::kFreed, event);
  }
  listener.OnUnmapped(mapping, end, event);
}

// Returns the driver allocation that contains the address; ranges_.end() if there is none.
HeldMemory::Ranges::const_iterator HeldMemory::AllocationAround(int32_t device,
                                                                uint64_t address) const {
  const auto after = ranges_.upper_bound({device, address});
  if (after == ranges_.begin()) return ranges_.end();
  const auto at = std::prev(after);
  const auto& [start, range] = *at;
  return start.first == device && address - start.second < range.size ? at : ranges_.end();
}

bool HeldMemory::IsInMappedMemory(uint64_t address) const {
  const auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return false;
  const auto& [start, mapping] = *std::prev(after);
  return address - start < mapping.size && mapping.physical != kNoHeld;
}

// Reports the driver memory that contains a block as a segment; returns whether there is any.
bool HeldMemory::MarkSegments(const Held& block, uint64_t start, Listener& listener) {
  if (segments_.empty()) segments_.resize(kMaxSegments);
  Segment& last = segments_[start / kSegmentGranule % kMaxSegments];
  if (last.version == ranges_version_ && last.device == block.device &&
      start - last.start < last.size) {
    return true;
  }
  const auto around = AllocationAround(block.device, start);
  if (around != ranges_.end()) {
    last = {around->first.second, around->second.size, ranges_version_, block.device};
    listener.OnSegment(around->second.id);
    return true;
  }
  if (!MarkMappings(start, start + block.size, listener)) return false;
  const auto reservation = ReservationOf(start);
  if (reservation == reservations_.end() || reservation->second.holds_blocks) return true;
  reservation->second.holds_blocks = true;
  MarkMappings(reservation->first, reservation->first + reservation->second.size, listener);
  return true;
}

bool HeldMemory::MarkMappings(uint64_t start, uint64_t end, Listener& listener) {
  bool any = false;
  auto at = mappings_.upper_bound(start);
  if (at != mappings_.begin()) --at;
  for (; at != mappings_.end() && at->first < end; ++at) {
    if (at->first + at->second.size <= start || at->second.physical == kNoHeld) continue;
    listener.OnSegment(at->second.physical);
    any = true;
  }
  return any;
}

// ---- Copies

HeldMemory HeldMemory::Renumbered(const std::vector<HeldId>& moved,
                                  absl::FunctionRef<uint32_t(uint32_t)> retag) const {
  HeldMemory copy = *this;
  copy.freed_.clear();
  copy.physical_.clear();
  copy.segments_.clear();
  for (auto& [place, held] : copy.held_) held.id = moved[held.id];
  for (auto& [start, range] : copy.ranges_) range.id = moved[range.id];
  for (const auto& [id, physical] : physical_) copy.physical_[moved[id]] = physical;
  for (auto& [address, mapping] : copy.mappings_) {
    if (mapping.physical != kNoHeld) mapping.physical = moved[mapping.physical];
    mapping.tag = retag(mapping.tag);
  }
  return copy;
}

}  // namespace gmt::analysis
