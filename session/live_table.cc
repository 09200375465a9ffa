#include "session/live_table.h"

namespace gmt::session {
namespace {

constexpr uint64_t kApiMask = 0xffff, kOneReference = kApiMask + 1;  // in the word LiveEntry::api

// Addresses differ in their middle bits; the multiplication carries those up, the shift brings them
// back down.
uint64_t Hash(uint64_t key) {
  key *= 0x9e3779b97f4a7c15;
  return key ^ key >> 32;
}

uint64_t PackPlace(const LiveValue& live) {
  return (uint64_t{live.thread} & 0xffffff) | static_cast<uint64_t>(live.kind) << 24 |
         static_cast<uint64_t>(live.memory) << 32 | uint64_t{live.device} << 40 |
         uint64_t{live.context} << 48;
}

void UnpackPlace(uint64_t place, LiveValue* live) {
  live->thread = static_cast<uint32_t>(place & 0xffffff);
  live->kind = static_cast<Kind>(place >> 24 & 0xff);
  live->memory = static_cast<Memory>(place >> 32 & 0xff);
  live->device = static_cast<uint8_t>(place >> 40);
  live->context = static_cast<uint8_t>(place >> 48);
}

}  // namespace

bool LiveTable::MakeKey(Space space, uint64_t value, uint64_t* key) {
  *key = static_cast<uint64_t>(space) << 60 | value;
  return value <= kKeyValueMask;
}

uint64_t LiveTable::Locate(uint64_t key) const {
  const uint64_t home = Hash(key);
  for (uint64_t g = 0; g < kGroups; ++g) {
    const uint64_t first = ((home + g) & group_mask_) * kGroupSize;
    bool never_used = false;
    for (uint64_t i = first; i < first + kGroupSize; ++i) {
      const uint64_t seen = keys_[i].load(std::memory_order_acquire);
      if (seen == key) return i;
      never_used |= seen == kKeyEmpty;
    }
    if (never_used) return kNowhere;
  }
  return kNowhere;
}

uint64_t LiveTable::Claim(uint64_t key) const {
  const uint64_t home = Hash(key);
  for (uint64_t g = 0; g < kGroups; ++g) {
    const uint64_t first = ((home + g) & group_mask_) * kGroupSize;
    for (uint64_t i = first; i < first + kGroupSize; ++i) {
      uint64_t seen = keys_[i].load(std::memory_order_relaxed);
      while (seen == kKeyEmpty || seen == kKeyErased) {
        if (keys_[i].compare_exchange_weak(seen, kKeyClaimed, std::memory_order_acquire)) return i;
      }
    }
  }
  return kNowhere;
}

void LiveTable::WriteEntry(uint64_t place, const LiveValue& live) const {
  LiveEntry& e = entries_[place];
  const uint64_t version =
      e.version.load(std::memory_order_relaxed) | 1;  // odd after a killed writer, too
  e.version.store(version, std::memory_order_relaxed);
  // Release stores: a reader that sees any of them sees the odd version too.
  e.ticket.store(live.ticket, std::memory_order_release);
  e.size.store(live.size, std::memory_order_release);
  e.stream.store(live.stream, std::memory_order_release);
  e.time_ns.store(live.time_ns, std::memory_order_release);
  e.stacks.store(uint64_t{live.stack} | uint64_t{live.forward_stack} << 32,
                 std::memory_order_release);
  e.place.store(PackPlace(live), std::memory_order_release);
  e.api.store(live.api, std::memory_order_release);
  e.version.store(version + 1, std::memory_order_release);
}

bool LiveTable::ReadEntry(uint64_t place, uint64_t key, LiveValue* live) const {
  const LiveEntry& e = entries_[place];
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint64_t version = e.version.load(std::memory_order_acquire);
    live->ticket = e.ticket.load(std::memory_order_acquire);
    live->size = e.size.load(std::memory_order_acquire);
    live->stream = e.stream.load(std::memory_order_acquire);
    live->time_ns = e.time_ns.load(std::memory_order_acquire);
    const uint64_t stacks = e.stacks.load(std::memory_order_acquire);
    UnpackPlace(e.place.load(std::memory_order_acquire), live);
    live->api = static_cast<uint16_t>(e.api.load(std::memory_order_acquire));
    live->stack = static_cast<uint32_t>(stacks);
    live->forward_stack = static_cast<uint32_t>(stacks >> 32);
    if (keys_[place].load(std::memory_order_acquire) != key) return false;
    if (!(version & 1) && e.version.load(std::memory_order_relaxed) == version) return true;
  }
  return false;  // its writer died in the middle of a replacement
}

LiveTable::Result LiveTable::Insert(Space space, uint64_t value, const LiveValue& live) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return Result::kUnrepresentable;
  uint64_t place = Locate(key);
  if (place != kNowhere) {  // its free was never seen: the new allocation takes over
    WriteEntry(place, live);
    return Result::kDone;
  }
  place = Claim(key);
  if (place == kNowhere) return Result::kFull;
  WriteEntry(place, live);
  keys_[place].store(key, std::memory_order_release);
  return Result::kDone;
}

bool LiveTable::Erase(Space space, uint64_t value, LiveValue* live) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const uint64_t place = Locate(key);
  if (place == kNowhere) return false;
  const bool read = ReadEntry(place, key, live);
  // Of two threads freeing one address, one wins.
  return keys_[place].compare_exchange_strong(key, kKeyErased, std::memory_order_acq_rel) && read;
}

bool LiveTable::Erase(Space space, uint64_t value) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const uint64_t place = Locate(key);
  return place != kNowhere &&
         keys_[place].compare_exchange_strong(key, kKeyErased, std::memory_order_acq_rel);
}

void LiveTable::Prepare(Space space, uint64_t value) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return;
  const uint64_t first = (Hash(key) & group_mask_) * kGroupSize;
  __builtin_prefetch(&keys_[first], /*for writing*/ 1);
  __builtin_prefetch(&entries_[first], 1);  // the usual one: few groups have two
}

bool LiveTable::Find(Space space, uint64_t value, LiveValue* live) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const uint64_t place = Locate(key);
  return place != kNowhere && ReadEntry(place, key, live);
}

bool LiveTable::AddReference(Space space, uint64_t value) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const uint64_t place = Locate(key);
  if (place == kNowhere) return false;
  entries_[place].api.fetch_add(kOneReference, std::memory_order_relaxed);
  return true;
}

bool LiveTable::DropReference(Space space, uint64_t value) const {
  uint64_t key;
  if (!MakeKey(space, value, &key)) return false;
  const uint64_t place = Locate(key);
  if (place == kNowhere) return false;
  std::atomic<uint64_t>& word = entries_[place].api;
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (seen > kApiMask) {
    if (word.compare_exchange_weak(seen, seen - kOneReference, std::memory_order_relaxed))
      return true;
  }
  return false;
}

}  // namespace gmt::session
