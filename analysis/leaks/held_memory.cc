#include "analysis/leaks/held_memory.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace gmt::analysis {
namespace {

using format::Event;

constexpr size_t kMostRefusable = 1024, kMostRecorded = 1 << 16, kMostOfThread = 1024;

bool Failed(const Event& event) { return event.has(format::kHasResult) && event.result != 0; }
bool IsHost(Memory memory) { return memory == PINNED || memory == REGISTERED; }
bool IsArray(Memory memory) { return memory == ARRAY || memory == MIPMAPPED; }
bool IsForeign(Memory memory) {
  return memory == IPC || memory == EXTERNAL || memory == GRAPHICS || memory == MULTICAST;
}
uint64_t ValueOf(const Event& event) {
  const bool physical = event.kind == CREATE || event.kind == RELEASE;
  return physical && event.address == 0 ? event.handle : event.address;
}

}  // namespace

void HeldMemory::OnEvent(const Event& event) {
  // Regions are the program's labels for memory that already counts.
  if (event.memory == REGION) return;
  switch (event.kind) {
    case ALLOC:
    case CREATE:
    case REGISTER:
      if (!IsForeign(event.memory)) OnAlloc(event);
      return;
    case FREE:
    case RELEASE:
    case UNREGISTER:
      if (!Failed(event) && ValueOf(event) != 0 && !IsForeign(event.memory)) OnFree(event);
      return;
    case FREE_DONE:
      return OnFreeDone(event);
    case ALLOC_FAILED:
      if (HeapOf(event) > kHostHeap) ForgetRecords(event.thread);
      return;
    case RESERVE:
      if (!Failed(event)) reservations_[event.address] = {event.size, false};
      return;
    case UNRESERVE:
      reservations_.erase(event.address);
      return;
    case MAP:
      if (!IsForeign(event.memory) && !Failed(event)) OnMap(event);
      return;
    case UNMAP:
      if (!IsForeign(event.memory) && !Failed(event)) OnUnmap(event);
      return;
    case CONTEXT_RESET:
      return OnContextReset(event);
    case EVENT_RECORD:
      if ((event.flags & format::kCalledByAllocator) != 0) OnRecord(event);
      return;
    case SYNC:
      if (event.has(format::kHasObject) && !Failed(event))
        OnDone(event.object, (event.flags & format::kCalledByAllocator) != 0);
      return;
    case GAP:
      has_gaps_ = true;
      return;
    default:
      return;
  }
}

void HeldMemory::OnAlloc(const Event& event) {
  const uint32_t heap = HeapOf(event);
  if (Failed(event)) return heap > kHostHeap ? ForgetRecords(event.thread) : void();
  const Place place = PlacesOf(event, heap).front();
  if (place.space >= kFirstBlockSpace) {
    has_blocks_ = true;
    OnReuse(event);
    if (const auto awaiting = awaiting_.find(place); awaiting != awaiting_.end())
      EndAwaiting(awaiting->second);
  } else {
    refusable_.erase(place);
  }
  // Memory at an address that is already held: the free of the old memory was lost.
  if (const auto held = held_.find(place); held != held_.end()) {
    const PieceId old = held->second;
    held_.erase(held);
    EndPiece(old);
  }
  const PieceId id = Add(event, place, heap);
  held_[place] = id;
  if (place.space == kDeviceSpace) ranges_[{pieces_[id].device, place.value}] = id;
  ++steps_;
  listener_->OnBorn(id, pieces_[id]);
  if (heap <= kHostHeap) return;
  MarkSegments(pieces_[id]);
  ForgetRecords(event.thread);
}

PieceId HeldMemory::Add(const Event& event, const Place& place, uint32_t heap) {
  HeldPiece piece;
  piece.value = place.value;
  piece.space = place.space;
  piece.size = event.size;
  piece.stream = event.stream;
  piece.has_stream = event.has(format::kHasStream);
  piece.context = event.has(format::kHasContext) ? event.context : UINT32_MAX;
  piece.device = heap == kHostHeap ? kHostDevice : static_cast<int32_t>(event.device);
  piece.heap = heap;
  piece.memory = static_cast<uint8_t>(event.memory);
  piece.from_before = IsBeforeAttach(event);
  piece.stack = piece.from_before ? 0 : event.stack;
  piece.forward_stack = piece.from_before ? 0 : event.forward_stack;
  piece.is_segment = heap == kDriverHeap && event.has(format::kHasPool) &&
                     (event.memory == DEVICE || event.memory == VMM);
  PieceId id = static_cast<PieceId>(pieces_.size());
  if (unused_.empty()) {
    pieces_.emplace_back();
    used_.push_back(false);
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  pieces_[id] = piece;
  used_[id] = true;
  return id;
}

// The caller removes the piece from held_ or awaiting_.
void HeldMemory::EndPiece(PieceId id) {
  const HeldPiece piece = pieces_[id];
  if (piece.space == kDeviceSpace) {
    const auto range = ranges_.find({piece.device, piece.value});
    if (range != ranges_.end() && range->second == id) ranges_.erase(range);
  }
  used_[id] = false;
  unused_.push_back(id);
  ++steps_;
  listener_->OnFreed(id, piece);
}

void HeldMemory::OnFree(const Event& event) {
  const uint32_t heap = HeapOf(event);
  const Places places = PlacesOf(event, heap);
  for (const Place& place : places) {
    const auto held = held_.find(place);
    if (held == held_.end()) continue;
    const PieceId id = held->second;
    held_.erase(held);
    if (place.space >= kFirstBlockSpace) return OnBlockFreed(place, id, event);
    if (refusable_.size() >= kMostRefusable) refusable_.clear();
    refusable_[place] = pieces_[id];
    if (place.space == kPhysicalSpace && pieces_[id].mappings > 0) {
      pieces_[id].released = true;
      return;
    }
    return EndPiece(id);
  }
  if (heap > kHostHeap) ForgetRecords(event.thread);
  // After a gap, the birth may be among the missing events.
  if (has_gaps_ || event.size == 0) return;
  ++steps_;
  listener_->OnFreeOfUnknown(heap == kHostHeap ? kHostDevice : static_cast<int32_t>(event.device),
                             heap, event.size);
}

// ---- When a block may be reused

void HeldMemory::OnBlockFreed(const Place& place, PieceId id, const Event& event) {
  if (states_completions_) return Await(place, id);
  pieces_[id].waits_for = WaitsOf(id, event.thread);
  if (pieces_[id].waits_for == 0) return EndPiece(id);
  awaiting_blocks_[{pieces_[id].device, pieces_[id].value}] = id;
  Await(place, id);
}

// Counts the events on other streams that the thread recorded since its last block event.
uint32_t HeldMemory::WaitsOf(PieceId id, uint32_t thread) {
  const auto own = by_thread_.find(thread);
  if (own == by_thread_.end() || own->second.empty()) return 0;
  uint32_t count = 0;
  for (const uint64_t object : own->second) {
    Recorded& recorded = recorded_[object];
    const bool same = pieces_[id].has_stream && recorded.stream == pieces_[id].stream;
    if (same || !confirmed_.contains(recorded.site)) continue;
    recorded.waiting = id;
    ++count;
  }
  own->second.clear();
  return count;
}

void HeldMemory::Await(const Place& place, PieceId id) {
  ++steps_;
  pieces_[id].awaits = true;
  awaiting_[place] = id;
  listener_->OnAwaits(id, pieces_[id]);
}

void HeldMemory::EndAwaiting(PieceId id) {
  const HeldPiece& piece = pieces_[id];
  awaiting_.erase(Place{piece.value, piece.space});
  const auto block = awaiting_blocks_.find({piece.device, piece.value});
  if (block != awaiting_blocks_.end() && block->second == id) awaiting_blocks_.erase(block);
  --steps_;  // the free was the step
  EndPiece(id);
}

void HeldMemory::OnRecord(const Event& event) {
  OnDone(event.object, false);
  if (recorded_.size() >= kMostRecorded) {
    recorded_.clear();
    by_thread_.clear();
  }
  recorded_[event.object] = {event.value, event.stream, kNoPiece};
  std::vector<uint64_t>& own = by_thread_[event.thread];
  if (own.size() == kMostOfThread) own.erase(own.begin(), own.begin() + kMostOfThread / 2);
  own.push_back(event.object);
}

void HeldMemory::OnDone(uint64_t object, bool by_allocator) {
  const auto recorded = recorded_.find(object);
  if (recorded == recorded_.end()) return;
  if (by_allocator) confirmed_.insert(recorded->second.site);
  const PieceId id = recorded->second.waiting;
  recorded->second.waiting = kNoPiece;
  if (id >= pieces_.size() || !used_[id] || !pieces_[id].awaits || pieces_[id].waits_for == 0)
    return;
  if (--pieces_[id].waits_for == 0) EndAwaiting(id);
}

void HeldMemory::OnReuse(const Event& event) {
  if (awaiting_blocks_.empty()) return;
  const auto device = static_cast<int32_t>(event.device);
  auto at = awaiting_blocks_.upper_bound({device, event.address});
  if (at != awaiting_blocks_.begin()) {
    const auto before = std::prev(at);
    const HeldPiece& piece = pieces_[before->second];
    if (piece.device == device && event.address - piece.value < piece.size) at = before;
  }
  std::vector<PieceId> reused;
  for (; at != awaiting_blocks_.end() && at->first.first == device &&
         at->first.second < event.address + event.size;
       ++at)
    reused.push_back(at->second);
  for (const PieceId id : reused) EndAwaiting(id);
}

void HeldMemory::ForgetRecords(uint32_t thread) {
  if (by_thread_.empty()) return;
  const auto own = by_thread_.find(thread);
  if (own != by_thread_.end()) own->second.clear();
}

void HeldMemory::OnFreeDone(const Event& event) {
  const uint32_t heap = HeapOf(event);
  const Places places = PlacesOf(event, heap);
  if (places.front().space >= kFirstBlockSpace) {
    if (Failed(event)) return;
    states_completions_ = true;
    const auto awaiting = awaiting_.find(places.front());
    if (awaiting != awaiting_.end()) EndAwaiting(awaiting->second);
    return;
  }
  for (const Place& place : places) {
    const auto refusable = refusable_.find(place);
    if (refusable == refusable_.end()) continue;
    const HeldPiece freed = refusable->second;
    refusable_.erase(refusable);
    if (!Failed(event) || held_.contains(place)) return;
    // Physical memory that is still mapped had not ended yet.
    for (auto& [address, mapping] : mappings_) {
      if (mapping.physical == kNoPiece || !pieces_[mapping.physical].released) continue;
      if (pieces_[mapping.physical].value != freed.value) continue;
      pieces_[mapping.physical].released = false;
      held_[place] = mapping.physical;
      return;
    }
    const PieceId id = unused_.empty() ? static_cast<PieceId>(pieces_.size()) : unused_.back();
    if (unused_.empty()) {
      pieces_.emplace_back();
      used_.push_back(false);
    } else {
      unused_.pop_back();
    }
    pieces_[id] = freed;
    used_[id] = true;
    held_[place] = id;
    if (place.space == kDeviceSpace) ranges_[{freed.device, place.value}] = id;
    --steps_;
    return listener_->OnBorn(id, freed);
  }
}

// ---- Addresses and their backing memory

void HeldMemory::OnMap(const Event& event) {
  if (mappings_.contains(event.address)) EndMapping(event.address);
  Mapping mapping{event.size, kNoPiece, static_cast<int32_t>(event.device)};
  const auto held = held_.find(Place{event.handle, kPhysicalSpace});
  if (event.has(format::kHasHandle) && held != held_.end()) {
    mapping.physical = held->second;
    ++pieces_[held->second].mappings;
    if (!event.has(format::kHasDevice)) mapping.device = pieces_[held->second].device;
  }
  const auto* reservation = ReservationOf(event.address);
  if (reservation != nullptr && reservation->second.holds_blocks && mapping.physical != kNoPiece)
    MarkSegment(mapping.physical);
  mappings_[event.address] = mapping;
}

void HeldMemory::OnUnmap(const Event& event) {
  std::vector<uint64_t> ended;
  const uint64_t size = std::max<uint64_t>(event.size, 1);
  for (auto at = mappings_.lower_bound(event.address);
       at != mappings_.end() && at->first - event.address < size; ++at)
    ended.push_back(at->first);
  for (const uint64_t address : ended) EndMapping(address);
}

void HeldMemory::EndMapping(uint64_t address) {
  const auto at = mappings_.find(address);
  const PieceId physical = at->second.physical;
  mappings_.erase(at);
  if (physical == kNoPiece || !used_[physical]) return;
  HeldPiece& piece = pieces_[physical];
  if (piece.mappings > 0 && --piece.mappings == 0 && piece.released) EndPiece(physical);
}

std::pair<const uint64_t, HeldMemory::Reservation>* HeldMemory::ReservationOf(uint64_t address) {
  const auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return nullptr;
  auto& reservation = *std::prev(after);
  return address - reservation.first < reservation.second.size ? &reservation : nullptr;
}

PieceId HeldMemory::AllocationAround(int32_t device, uint64_t address) const {
  const auto after = ranges_.upper_bound({device, address});
  if (after == ranges_.begin()) return kNoPiece;
  const PieceId id = std::prev(after)->second;
  const HeldPiece& piece = pieces_[id];
  return piece.device == device && address - piece.value < piece.size ? id : kNoPiece;
}

void HeldMemory::MarkSegment(PieceId id) {
  if (pieces_[id].is_segment) return;
  pieces_[id].is_segment = true;
  listener_->OnSegment(id, pieces_[id]);
}

void HeldMemory::MarkSegments(const HeldPiece& block) {
  const uint64_t start = block.value, end = start + block.size;
  if (const PieceId id = AllocationAround(block.device, start); id != kNoPiece)
    return MarkSegment(id);
  if (!MarkMappings(start, end)) return;
  auto* reservation = ReservationOf(start);
  if (reservation == nullptr || reservation->second.holds_blocks) return;
  reservation->second.holds_blocks = true;
  MarkMappings(reservation->first, reservation->first + reservation->second.size);
}

bool HeldMemory::MarkMappings(uint64_t start, uint64_t end) {
  bool any = false;
  auto at = mappings_.upper_bound(start);
  if (at != mappings_.begin()) --at;
  for (; at != mappings_.end() && at->first < end; ++at) {
    if (at->first + at->second.size <= start || at->second.physical == kNoPiece) continue;
    MarkSegment(at->second.physical);
    any = true;
  }
  return any;
}

void HeldMemory::OnContextReset(const Event& event) {
  const bool by_context = event.has(format::kHasContext), by_device = event.has(format::kHasDevice);
  if (!by_context && !by_device) return;
  const auto in_scope = [&](const HeldPiece& piece) {
    if (by_context && piece.context != UINT32_MAX) return piece.context == event.context;
    return by_device && piece.device == static_cast<int32_t>(event.device);
  };
  std::vector<uint64_t> unmapped;
  for (const auto& [address, mapping] : mappings_) {
    const bool gone = mapping.physical == kNoPiece
                          ? by_device && mapping.device == static_cast<int32_t>(event.device)
                          : in_scope(pieces_[mapping.physical]);
    if (gone) unmapped.push_back(address);
  }
  for (const uint64_t address : unmapped) EndMapping(address);
  // Hash tables have no defined order; notifications must come in the same order in every run.
  std::vector<std::pair<PieceId, Place>> gone;
  for (const auto& [place, id] : held_) {
    if (in_scope(pieces_[id])) gone.emplace_back(id, place);
  }
  std::sort(gone.begin(), gone.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [id, place] : gone) {
    held_.erase(place);
    EndPiece(id);
  }
}

// ---- Names

uint32_t HeldMemory::HeapOf(const Event& event) {
  if (IsHost(event.memory) || event.kind == REGISTER || event.kind == UNREGISTER) return kHostHeap;
  return HeapNamed(event.heap);
}

uint32_t HeldMemory::HeapNamed(uint32_t string_id) {
  if (string_id == last_heap_string_) return last_heap_;
  const auto [it, is_new] = heap_by_string_.try_emplace(string_id, kDriverHeap);
  const std::string_view name = definitions_.string(string_id);
  if (is_new && !name.empty()) {
    const auto known = std::find(heaps_.begin(), heaps_.end(), name);
    it->second = static_cast<uint32_t>(known - heaps_.begin());
    if (known == heaps_.end()) heaps_.emplace_back(name);
  }
  last_heap_string_ = string_id;
  return last_heap_ = it->second;
}

bool HeldMemory::IsBeforeAttach(const Event& event) {
  if (event.api == 0) return false;
  if (event.api == before_attach_) return true;
  if (event.stack != 0 || definitions_.string(event.api) != kBeforeAttachApi) return false;
  before_attach_ = event.api;
  return true;
}

HeldMemory::Place HeldMemory::PlaceOf(uint32_t heap, Memory memory, uint64_t value) const {
  if (heap > kHostHeap) return {value, kFirstBlockSpace + heap};
  if (heap == kHostHeap) return {value, kHostSpace};
  return {value, static_cast<uint32_t>(IsArray(memory) ? kArraySpace : kDeviceSpace)};
}

HeldMemory::Places HeldMemory::PlacesOf(const Event& event, uint32_t heap) const {
  const uint64_t value = ValueOf(event);
  if (event.kind == CREATE || event.kind == RELEASE) return {{value, kPhysicalSpace}};
  if (heap > kHostHeap || event.memory != MEMORY_UNSPECIFIED || event.kind == ALLOC) {
    const Place place = PlaceOf(heap, event.memory, value);
    if (event.kind == FREE_DONE && event.memory == VMM) return {place, {value, kPhysicalSpace}};
    return {place};
  }
  return {
      {value, kDeviceSpace}, {value, kHostSpace}, {value, kArraySpace}, {value, kPhysicalSpace}};
}

}  // namespace gmt::analysis
