#include "analysis/leaks/held_pieces.h"

#include <algorithm>
#include <iterator>

#include "analysis/trace/trace.h"

namespace gmt::analysis {
namespace {

using format::Event;

constexpr size_t kMaxRecorded = 1 << 16, kMaxOfThread = 1024;

}  // namespace

void HeldPieces::OnEvent(const Event& event) {
  // Regions are the program's labels for memory that already counts.
  if (event.memory == REGION) return;
  switch (event.kind) {
    case ALLOC:
    case CREATE:
    case REGISTER:
      return OnAlloc(event);
    case FREE:
    case RELEASE:
    case UNREGISTER:
      return OnFree(event);
    case FREE_DONE:
      return OnFreeDone(event);
    case ALLOC_FAILED:
      if (HeapOf(event) > kHostHeap) ForgetRecords(event.thread);
      return;
    case RESERVE:
      return memory_.Reserve(event);
    case UNRESERVE:
      return memory_.Unreserve(event);
    case MAP:
      memory_.Map(event, *this);
      return;
    case UNMAP:
      memory_.Unmap(event, *this);
      return;
    case CONTEXT_RESET:
      return memory_.Reset(event, *this);
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

void HeldPieces::OnAlloc(const Event& event) {
  if (IsForeign(event.memory)) return;
  const uint32_t heap = HeapOf(event);
  const bool is_block = heap > kHostHeap;
  if (is_block && !Failed(event)) {
    has_blocks_ = true;
    OnReuse(event);
    const auto awaiting = awaiting_.find(PlaceOf(heap, event.memory, event.address));
    if (awaiting != awaiting_.end()) EndAwaiting(awaiting->second);
  }
  memory_.Alloc(event, heap, *this);
  if (is_block) ForgetRecords(event.thread);
}

HeldId HeldPieces::OnBorn(const Event& event, const MemoryPlace& place) {
  HeldPiece piece;
  piece.place = place;
  piece.heap = HeapOf(event);
  piece.size = event.size;
  piece.stream = event.stream;
  piece.has_stream = event.has(format::kHasStream);
  piece.device = piece.heap == kHostHeap ? kHostDevice : static_cast<int32_t>(event.device);
  piece.memory = static_cast<uint8_t>(event.memory);
  piece.from_before = names_.IsBeforeAttach(event);
  piece.stack = event.stack;
  piece.forward_stack = piece.from_before ? 0 : event.forward_stack;
  piece.is_segment = piece.heap == kDriverHeap && event.has(format::kHasPool) &&
                     (event.memory == DEVICE || event.memory == VMM);
  piece.is_held = true;
  const PieceId id = UnusedId();
  pieces_[id] = piece;
  listener_->OnBorn(id, pieces_[id]);
  return id;
}

PieceId HeldPieces::UnusedId() {
  if (unused_.empty()) {
    pieces_.emplace_back();
    return static_cast<PieceId>(pieces_.size() - 1);
  }
  const PieceId id = unused_.back();
  unused_.pop_back();
  return id;
}

void HeldPieces::OnFree(const Event& event) {
  const uint32_t heap = HeapOf(event);
  if (memory_.Free(event, heap, *this) == kNoHeld && heap > kHostHeap) ForgetRecords(event.thread);
}

void HeldPieces::OnEnded(HeldId id, HeldMemory::End end, const Event& event) {
  if (pieces_[id].place.is_block() && end == HeldMemory::End::kFreed)
    return OnBlockFreed(id, event.thread);
  EndPiece(id);
}

void HeldPieces::EndPiece(PieceId id) {
  pieces_[id].is_held = false;
  listener_->OnFreed(id, pieces_[id]);
  if (pieces_[id].place.is_block()) return unused_.push_back(id);
  refusable_.push_back(id);
  if (refusable_.size() <= HeldMemory::kMaxRefusable) return;
  unused_.push_back(refusable_.front());
  refusable_.pop_front();
}

bool HeldPieces::OnRestored(HeldId id, const MemoryPlace& place) {
  HeldPiece& piece = pieces_[id];
  if (piece.is_held || piece.place != place) return false;  // the id was used again
  const auto freed = std::find(refusable_.begin(), refusable_.end(), id);
  if (freed == refusable_.end()) return false;
  refusable_.erase(freed);
  piece.is_held = true;
  listener_->OnBorn(id, piece);
  return true;
}

void HeldPieces::OnSegment(HeldId id) {
  if (pieces_[id].is_segment) return;
  pieces_[id].is_segment = true;
  listener_->OnSegment(id, pieces_[id]);
}

HeldId HeldPieces::OnFreeOfUnknown(const Event& event) {
  // After a gap, the birth may be among the missing events.
  if (has_gaps_ || event.size == 0) return kNoHeld;
  const uint32_t heap = HeapOf(event);
  listener_->OnFreeOfUnknown(heap == kHostHeap ? kHostDevice : static_cast<int32_t>(event.device),
                             heap, event.size);
  return kNoHeld;
}

void HeldPieces::OnFreeDone(const Event& event) {
  const uint32_t heap = HeapOf(event);
  if (heap <= kHostHeap) return memory_.FreeDone(event, heap, *this);
  if (Failed(event)) return;
  states_completions_ = true;
  const auto awaiting = awaiting_.find(PlaceOf(heap, event.memory, event.address));
  if (awaiting != awaiting_.end()) EndAwaiting(awaiting->second);
}

// ---- When a block may be reused

void HeldPieces::OnBlockFreed(PieceId id, uint32_t thread) {
  HeldPiece& piece = pieces_[id];
  if (!states_completions_) {
    piece.waits_for = WaitsOf(id, thread);
    if (piece.waits_for == 0) return EndPiece(id);
    awaiting_blocks_[{piece.device, piece.place.value}] = id;
  }
  piece.awaits = true;
  awaiting_[piece.place] = id;
  listener_->OnAwaits(id, piece);
}

// Counts the events on other streams that the thread recorded since its last block event.
uint32_t HeldPieces::WaitsOf(PieceId id, uint32_t thread) {
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

void HeldPieces::EndAwaiting(PieceId id) {
  const HeldPiece& piece = pieces_[id];
  awaiting_.erase(piece.place);
  const auto block = awaiting_blocks_.find({piece.device, piece.place.value});
  if (block != awaiting_blocks_.end() && block->second == id) awaiting_blocks_.erase(block);
  EndPiece(id);
}

void HeldPieces::OnRecord(const Event& event) {
  OnDone(event.object, false);
  if (recorded_.size() >= kMaxRecorded) {
    recorded_.clear();
    by_thread_.clear();
  }
  recorded_[event.object] = {event.value, event.stream, kNoPiece};
  std::vector<uint64_t>& own = by_thread_[event.thread];
  if (own.size() == kMaxOfThread) own.erase(own.begin(), own.begin() + kMaxOfThread / 2);
  own.push_back(event.object);
}

void HeldPieces::OnDone(uint64_t object, bool by_allocator) {
  const auto recorded = recorded_.find(object);
  if (recorded == recorded_.end()) return;
  if (by_allocator) confirmed_.insert(recorded->second.site);
  const PieceId id = recorded->second.waiting;
  recorded->second.waiting = kNoPiece;
  if (id == kNoPiece || !pieces_[id].is_held || pieces_[id].waits_for == 0) return;
  if (--pieces_[id].waits_for == 0) EndAwaiting(id);
}

void HeldPieces::OnReuse(const Event& event) {
  if (awaiting_blocks_.empty()) return;
  const auto device = static_cast<int32_t>(event.device);
  auto at = awaiting_blocks_.upper_bound({device, event.address});
  if (at != awaiting_blocks_.begin()) {
    const auto before = std::prev(at);
    const HeldPiece& piece = pieces_[before->second];
    if (piece.device == device && event.address - piece.place.value < piece.size) at = before;
  }
  std::vector<PieceId> reused;
  for (; at != awaiting_blocks_.end() && at->first.first == device &&
         at->first.second < event.address + event.size;
       ++at)
    reused.push_back(at->second);
  for (const PieceId id : reused) EndAwaiting(id);
}

void HeldPieces::ForgetRecords(uint32_t thread) {
  if (by_thread_.empty()) return;
  const auto own = by_thread_.find(thread);
  if (own != by_thread_.end()) own->second.clear();
}

}  // namespace gmt::analysis
