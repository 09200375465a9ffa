#include "session/live_table.h"

namespace gmt::session {
namespace {

// Fields of the word LiveEntry::api.
constexpr uint64_t kOneReference = 1 << 16;
constexpr uint64_t kReferences = 0xffffffff * kOneReference;
constexpr int kRolesShift = 48;
constexpr uint64_t kParameterBit = uint64_t{kParameter} << kRolesShift;
constexpr uint64_t kSavedBit = uint64_t{kSaved} << kRolesShift;

uint32_t LevelsOf(uint32_t word) { return word & ~kLiveGrowthEnded; }

}  // namespace

bool LiveTable::MakeKey(Space space, uint64_t value, uint64_t* key) {
  *key = static_cast<uint64_t>(space) << 60 | value;
  return value <= kKeyValueMask;
}

uint32_t LiveTable::Backed() const {
  if (further_ == 0) return 0;
  const uint32_t backed = LevelsOf(control_->live_levels.load(std::memory_order_acquire));
  return backed < further_ ? backed : further_;
}

inline LiveTable::Place LiveTable::Locate(uint64_t key) const {
  const uint64_t index = levels_[0].Locate(key);
  if (__builtin_expect(index == LiveLevel::kFurther, 0)) return LocateFurther(key);
  return {index == LiveLevel::kNowhere ? nullptr : levels_, index};
}

__attribute__((noinline)) LiveTable::Place LiveTable::LocateFurther(uint64_t key) const {
  const uint32_t last = Backed();
  for (uint32_t n = 1; n <= last; ++n) {
    const uint64_t index = levels_[n].Locate(key);
    if (index == LiveLevel::kNowhere) break;
    if (index != LiveLevel::kFurther) return {&levels_[n], index};
  }
  return {nullptr, 0};
}

// Returns whether the level has memory, allocating it if necessary. REQUIRES: all levels before it
// have memory.
bool LiveTable::Grow(uint32_t level) const {
  if (level > further_) return false;
  uint32_t seen = control_->live_levels.load(std::memory_order_acquire);
  if (LevelsOf(seen) >= level) return true;
  if ((seen & kLiveGrowthEnded) != 0) return false;
  const int error = levels_[level].Back();
  const uint32_t wanted = error == 0 ? level : seen | kLiveGrowthEnded;
  if (control_->live_levels.compare_exchange_strong(seen, wanted, std::memory_order_acq_rel)) {
    if (error == 0) return true;
    control_->live_errno.store(static_cast<uint32_t>(error), std::memory_order_relaxed);
  } else if (LevelsOf(seen) >= level) {
    return true;  // another thread has allocated it
  }
  levels_[level].Drop();  // the level will never be used
  return false;
}

LiveTable::Place LiveTable::Claim(uint64_t key) const {
  for (uint32_t n = 0; n == 0 || Grow(n); ++n) {
    const uint64_t index = levels_[n].Claim(key);
    if (index != LiveLevel::kFurther) return {&levels_[n], index};
  }
  return {nullptr, 0};
}

LiveTable::Result LiveTable::Insert(Space space, uint64_t value, const LiveValue& live) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return Result::kUnrepresentable;
  Place place = Locate(key);
  if (place.level != nullptr) {  // its free was missed; the new allocation replaces it
    place.level->WriteEntry(place.index, live);
    return Result::kDone;
  }
  place = Claim(key);
  if (place.level == nullptr) return Result::kFull;
  place.level->WriteEntry(place.index, live);
  place.level->key(place.index).store(key, std::memory_order_release);
  return Result::kDone;
}

bool LiveTable::Erase(Space space, uint64_t value, LiveValue* live) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const Place place = Locate(key);
  if (place.level == nullptr) return false;
  const bool read = place.level->ReadEntry(place.index, key, live);
  // If two threads free the same address, one of them wins.
  return place.level->key(place.index)
             .compare_exchange_strong(key, kKeyErased, std::memory_order_acq_rel) &&
         read;
}

bool LiveTable::Erase(Space space, uint64_t value) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const Place place = Locate(key);
  return place.level != nullptr &&
         place.level->key(place.index)
             .compare_exchange_strong(key, kKeyErased, std::memory_order_acq_rel);
}

void LiveTable::Prepare(Space space, uint64_t value) const {
  uint64_t key;
  if (MakeKey(space, value, &key)) levels_[0].Prepare(key);
}

bool LiveTable::Find(Space space, uint64_t value, LiveValue* live) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const Place place = Locate(key);
  return place.level != nullptr && place.level->ReadEntry(place.index, key, live);
}

bool LiveTable::AddReference(Space space, uint64_t value) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const Place place = Locate(key);
  if (place.level == nullptr) return false;
  place.level->entry(place.index).api.fetch_add(kOneReference, std::memory_order_relaxed);
  return true;
}

bool LiveTable::DropReference(Space space, uint64_t value) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const Place place = Locate(key);
  if (place.level == nullptr) return false;
  std::atomic<uint64_t>& word = place.level->entry(place.index).api;
  uint64_t seen = word.load(std::memory_order_relaxed);
  while ((seen & kReferences) != 0) {
    if (word.compare_exchange_weak(seen, seen - kOneReference, std::memory_order_relaxed))
      return true;
  }
  return false;
}

template <typename Change>
bool LiveTable::ChangeRoles(Space space, uint64_t value, Roles* roles, Change change) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const Place place = Locate(key);
  if (place.level == nullptr) return false;
  LiveEntry& entry = place.level->entry(place.index);
  uint64_t seen = entry.api.load(std::memory_order_relaxed);
  uint64_t changed;
  do {
    changed = change(seen);
  } while (!entry.api.compare_exchange_weak(seen, changed, std::memory_order_relaxed));
  roles->before = static_cast<uint16_t>(seen >> kRolesShift);
  roles->after = static_cast<uint16_t>(changed >> kRolesShift);
  const uint64_t where = entry.place.load(std::memory_order_relaxed);
  roles->device = static_cast<uint8_t>(where >> 40);
  roles->memory = static_cast<Memory>(where >> 32 & 0xff);
  return true;
}

bool LiveTable::AddRole(Space space, uint64_t value, Role role, Roles* roles) const {
  return ChangeRoles(space, value, roles,
                     [role](uint64_t word) { return word | uint64_t{role} << kRolesShift; });
}

bool LiveTable::AddParameter(Space space, uint64_t value, uint32_t more, Roles* roles) const {
  return ChangeRoles(space, value, roles, [more](uint64_t word) {
    if ((word & kSavedBit) != 0) return word;
    return word | kParameterBit | uint64_t{more} << kRolesShift;
  });
}

bool LiveTable::AddSaver(Space space, uint64_t value, Roles* roles) const {
  return ChangeRoles(space, value, roles, [](uint64_t word) {
    if ((word & kParameterBit) != 0) return word;
    const bool is_full = (word & kReferences) == kReferences;
    return (is_full ? word : word + kOneReference) | kSavedBit;
  });
}

bool LiveTable::DropSaver(Space space, uint64_t value, Roles* roles) const {
  return ChangeRoles(space, value, roles, [](uint64_t word) {
    if ((word & kReferences) != 0) word -= kOneReference;
    return (word & kReferences) == 0 ? word & ~kSavedBit : word;
  });
}

uint64_t LiveTable::FurtherBytes() const {
  uint64_t bytes = 0;
  for (uint32_t n = Backed(); n > 0; --n) bytes += levels_[n].count() * LiveLevel::kStride;
  return bytes;
}

int LiveTable::EmptyFurtherLevels() const {
  const uint32_t last = Backed();
  for (uint32_t n = 1; n <= last; ++n) {
    const int error = levels_[n].Empty();
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace gmt::session
