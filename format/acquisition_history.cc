#include "format/acquisition_history.h"

namespace gmt::format {
namespace {

// A few hostile bytes can claim many rows, but no process holds this many places. Beyond the limit,
// frees are written in full.
constexpr size_t kMaxPlaces = 1u << 22;
constexpr uint32_t kNoSlot = UINT32_MAX;
constexpr uint64_t kNoRow = UINT64_MAX;

// Addresses, reservations and handles with the same number are different places. 0: never returned.
uint64_t SpaceOf(Kind kind) {
  switch (kind) {
    case ALLOC:
    case FREE:
    case FREE_DONE:
    case ROLE:
      return 1;
    case RESERVE:
    case UNRESERVE:
      return 2;
    case CREATE:
    case RELEASE:
      return 3;
    case MAP:
    case UNMAP:
      return 4;
    case IMPORT:
    case UNIMPORT:
      return 5;
    case REGISTER:
    case UNREGISTER:
      return 6;
    default:
      return 0;
  }
}

template <typename T>
void Fill(Present bit, const Acquired& acquired, T known, Event* event, T* value) {
  if (event->has(bit) || (acquired.present & bit) == 0) return;
  *value = known;
  event->present |= bit;
}

}  // namespace

AcquisitionHistory::Place AcquisitionHistory::PlaceOf(const Event& event) {
  return {SpaceOf(event.kind) << 32 | event.device, event.heap, event.address};
}

void AcquisitionHistory::Add(const Event& event) {
  const uint64_t row = rows_++;
  if (SpaceOf(event.kind) == 0) return;
  const uint32_t unused =
      unused_slots_.empty() ? static_cast<uint32_t>(slots_.size()) : unused_slots_.back();
  const auto [at, is_new] = slot_of_place_.try_emplace(PlaceOf(event), unused);
  if (is_new && unused == kMaxPlaces) {
    slot_of_place_.erase(at);
    return;
  }
  const uint32_t slot = at->second;
  if (!is_new) {
    if (!InWindow(slot)) slot_of_old_row_.erase(slots_[slot].row);
  } else if (unused_slots_.empty()) {
    slots_.emplace_back();
  } else {
    unused_slots_.pop_back();
  }
  slots_[slot] = {row,
                  {event.present, event.address, event.size, event.stream, event.pool, event.heap,
                   event.device, event.context, event.memory}};
  Enter(row, slot);
}

// A row that is displaced from the window moves to the table, if it is still the last of its place.
void AcquisitionHistory::Enter(uint64_t row, uint32_t slot) {
  if (window_.empty()) window_.assign(kWindow, kNoSlot);
  uint32_t& entry = window_[row % kWindow];
  if (entry != kNoSlot && entry != slot) {
    const uint64_t leaving = slots_[entry].row;
    if (leaving != kNoRow && leaving % kWindow == row % kWindow) slot_of_old_row_[leaving] = entry;
  }
  entry = slot;
}

AcquisitionHistory::Found AcquisitionHistory::AcquisitionOf(const Event& event) const {
  const auto found = slot_of_place_.find(PlaceOf(event));
  if (found == slot_of_place_.end()) return {};
  const Slot& slot = slots_[found->second];
  if (slot.row >= rows_) return {};  // a damaged file: row numbers decreased
  return {rows_ - slot.row, &slot.acquired};
}

uint32_t AcquisitionHistory::SlotOf(uint64_t row) const {
  if (window_.empty()) return kNoSlot;
  const uint32_t recent = window_[row % kWindow];
  if (recent != kNoSlot && slots_[recent].row == row) return recent;
  const auto old = slot_of_old_row_.find(row);
  return old == slot_of_old_row_.end() || slots_[old->second].row != row ? kNoSlot : old->second;
}

const Acquired* AcquisitionHistory::Find(uint64_t distance) const {
  if (distance == 0 || distance > rows_) return nullptr;
  const uint32_t slot = SlotOf(rows_ - distance);
  return slot == kNoSlot ? nullptr : &slots_[slot].acquired;
}

void AcquisitionHistory::Ended(const Event& event, uint64_t distance) {
  if (distance == 0 || distance > rows_) return;
  const uint32_t slot = SlotOf(rows_ - distance);
  if (slot == kNoSlot) return;
  const Memory memory = slots_[slot].acquired.memory;
  const bool last_word = event.kind == FREE_DONE
                             ? event.result == 0
                             : event.kind == FREE && (memory == BLOCK || memory == REGION);
  if (last_word) Release(slot);
}

void AcquisitionHistory::Release(uint32_t slot) {
  Slot& ended = slots_[slot];
  const Acquired& acquired = ended.acquired;
  const auto place = slot_of_place_.find(
      {SpaceOf(ALLOC) << 32 | acquired.device, acquired.heap, acquired.address});
  // A damaged file may end a row that is not an allocation.
  if (place == slot_of_place_.end() || place->second != slot) return;
  slot_of_place_.erase(place);
  if (!InWindow(slot)) slot_of_old_row_.erase(ended.row);
  ended.row = kNoRow;
  unused_slots_.push_back(slot);
}

void CompleteRole(const Acquired& acquired, Event* event) {
  if (event->heap == 0) event->heap = acquired.heap;
  if (event->memory == MEMORY_UNSPECIFIED) event->memory = acquired.memory;
  Fill(kHasDevice, acquired, acquired.device, event, &event->device);
  Fill(kHasAddress, acquired, acquired.address, event, &event->address);
  Fill(kHasSize, acquired, acquired.size, event, &event->size);
}

void CompleteReturn(const Acquired& acquired, Event* event) {
  CompleteRole(acquired, event);
  Fill(kHasContext, acquired, acquired.context, event, &event->context);
  Fill(kHasStream, acquired, acquired.stream, event, &event->stream);
  Fill(kHasPool, acquired, acquired.pool, event, &event->pool);
}

}  // namespace gmt::format
