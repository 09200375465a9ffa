#include "format/acquisition_history.h"

#include <algorithm>
#include <utility>

namespace gmt::format {
namespace {

// A few hostile bytes can claim many rows, but no process holds this many places. Beyond the limit,
// frees are written in full.
constexpr size_t kMaxPlaces = 1u << 22;
// The table of places is not searched for outdated ones while it is small.
constexpr size_t kMinPlaces = 8192;

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

// Fills in those of `fields` that only the acquisition has.
void Complete(const Acquired& acquired, uint64_t fields, Event* event) {
  if (event->heap == 0) event->heap = acquired.heap;
  if (event->memory == MEMORY_UNSPECIFIED) event->memory = acquired.memory;
  const uint64_t missing = fields & acquired.present & ~event->present;
  if (missing == 0) return;
  event->present |= missing;
  if ((missing & kHasDevice) != 0) event->device = acquired.device;
  if ((missing & kHasContext) != 0) event->context = acquired.context;
  if ((missing & kHasAddress) != 0) event->address = acquired.address;
  if ((missing & kHasSize) != 0) event->size = acquired.size;
  if ((missing & kHasStream) != 0) event->stream = acquired.stream;
  if ((missing & kHasPool) != 0) event->pool = acquired.pool;
}

}  // namespace

template <typename Source>
AcquisitionHistory::Place AcquisitionHistory::PlaceOf(const Source& source) {
  return {SpaceOf(source.kind) << 32 | source.device, source.heap, source.address};
}

inline bool AcquisitionHistory::Holds(AcquisitionSlot slot, const Place& place) const {
  return slot < slots_.size() && PlaceOf(slots_[slot]) == place;
}

inline AcquisitionSlot AcquisitionHistory::TakeUnusedSlot() {
  if (unused_slots_.empty()) {
    if (slots_.size() == kMaxPlaces) return kNoAcquisitionSlot;
    slots_.emplace_back();
    return static_cast<AcquisitionSlot>(slots_.size() - 1);
  }
  const AcquisitionSlot slot = unused_slots_.back();
  unused_slots_.pop_back();
  return slot;
}

inline void AcquisitionHistory::Leave(AcquisitionSlot slot) {
  const uint64_t row = slots_[slot].row;
  AcquisitionSlot& entry = window_[row % kWindow];
  if (entry == slot) {
    entry = kNoAcquisitionSlot;
  } else {
    slot_of_old_row_.erase(row);
  }
}

AcquisitionSlot AcquisitionHistory::Add(const Event& event, AcquisitionSlot last) {
  const uint64_t row = rows_++;
  const AcquisitionSlot slot = Insert(event, row, last);
  if (slot == kNoAcquisitionSlot) return slot;
  Acquired* const acquired = &slots_[slot];
  // Set in place, because a copy would have to wait for the fields just written.
  acquired->row = row;
  acquired->address = event.address;
  acquired->size = event.size;
  acquired->stream = event.stream;
  acquired->pool = event.pool;
  acquired->present = static_cast<uint32_t>(event.present);
  acquired->heap = event.heap;
  acquired->device = event.device;
  acquired->context = event.context;
  acquired->memory = event.memory;
  acquired->kind = event.kind;
  return slot;
}

std::vector<Acquired> AcquisitionHistory::Kept() const {
  std::vector<Acquired> kept;
  kept.reserve(slots_.size() - unused_slots_.size());
  for (const Acquired& acquired : slots_) {
    if (acquired.kind != KIND_UNSPECIFIED) kept.push_back(acquired);
  }
  std::sort(kept.begin(), kept.end(),
            [](const Acquired& a, const Acquired& b) { return a.row < b.row; });
  return kept;
}

void AcquisitionHistory::AddKept(const Acquired& acquired) {
  rows_ = acquired.row + 1;
  const AcquisitionSlot slot = Insert(acquired, acquired.row, kNoAcquisitionSlot);
  if (slot != kNoAcquisitionSlot) slots_[slot] = acquired;
}

// Returns the slot of the place's last row, or a new one; none if there are too many.
template <typename Source>
inline AcquisitionSlot AcquisitionHistory::SlotFor(const Source& acquired, AcquisitionSlot last) {
  const Place place = PlaceOf(acquired);
  if (!has_places_ && acquired.kind == ALLOC) {
    if (!Holds(last, place)) return TakeUnusedSlot();
    Leave(last);
    return last;
  }
  if (slot_of_place_.size() > kMinPlaces + 2 * slots_.size()) {
    absl::erase_if(slot_of_place_,
                   [this](const auto& entry) { return !Holds(entry.second, entry.first); });
  }
  AcquisitionSlot& slot = slot_of_place_.try_emplace(place, kNoAcquisitionSlot).first->second;
  if (Holds(slot, place)) {
    Leave(slot);
  } else {
    slot = TakeUnusedSlot();
  }
  return slot;
}

template <typename Source>
inline AcquisitionSlot AcquisitionHistory::Insert(const Source& acquired, uint64_t row,
                                                  AcquisitionSlot last) {
  if (SpaceOf(acquired.kind) == 0) return kNoAcquisitionSlot;
  const AcquisitionSlot slot = SlotFor(acquired, last);
  if (slot == kNoAcquisitionSlot) return slot;
  if (window_.empty()) window_.assign(kWindow, kNoAcquisitionSlot);
  const AcquisitionSlot displaced = std::exchange(window_[row % kWindow], slot);
  if (displaced != kNoAcquisitionSlot) slot_of_old_row_[slots_[displaced].row] = displaced;
  return slot;
}

const Acquired* AcquisitionHistory::AcquisitionOf(const Event& event, AcquisitionSlot last) const {
  const Place place = PlaceOf(event);
  AcquisitionSlot slot = last;
  if (has_places_) {
    const auto found = slot_of_place_.find(place);
    slot = found == slot_of_place_.end() ? kNoAcquisitionSlot : found->second;
  }
  if (!Holds(slot, place)) return nullptr;
  const Acquired& acquired = slots_[slot];
  // In a damaged file, row numbers may decrease.
  return acquired.row < rows_ ? &acquired : nullptr;
}

const Acquired* AcquisitionHistory::Find(uint64_t distance) const {
  if (distance == 0 || distance > rows_ || window_.empty()) return nullptr;
  const uint64_t row = rows_ - distance;
  const AcquisitionSlot recent = window_[row % kWindow];
  if (recent != kNoAcquisitionSlot && slots_[recent].row == row) return &slots_[recent];
  const auto old = slot_of_old_row_.find(row);
  return old == slot_of_old_row_.end() ? nullptr : &slots_[old->second];
}

void AcquisitionHistory::Ended(const Event& event, const Acquired* acquired) {
  // A damaged file may end a row that is not an allocation.
  if (acquired == nullptr || acquired->kind != ALLOC) return;
  const bool last_word =
      event.kind == FREE_DONE
          ? event.result == 0
          : event.kind == FREE && (acquired->memory == BLOCK || acquired->memory == REGION);
  if (!last_word) return;
  Forget(static_cast<AcquisitionSlot>(acquired - slots_.data()));
}

void AcquisitionHistory::Forget(const Event& event, AcquisitionSlot slot) {
  if (Holds(slot, PlaceOf(event)) && slots_[slot].kind == ALLOC) Forget(slot);
}

void AcquisitionHistory::Forget(AcquisitionSlot slot) {
  Leave(slot);
  slots_[slot].kind = KIND_UNSPECIFIED;
  unused_slots_.push_back(slot);
}

void CompleteRole(const Acquired& acquired, Event* event) {
  Complete(acquired, kHasDevice | kHasAddress | kHasSize, event);
}

void CompleteReturn(const Acquired& acquired, Event* event) {
  Complete(acquired, kHasDevice | kHasAddress | kHasSize | kHasContext | kHasStream | kHasPool,
           event);
}

}  // namespace gmt::format
