// session/live_level.h
//
// LiveLevel: one hash table of the live table (session/live_table.h). It uses open addressing in
// groups of eight keys (one cache line). A probe examines at most kGroups groups and stops at a
// never-used key. A new key takes the first place that is free, and used keys never become
// never-used again, so nothing can be stored further along the probe sequence, neither in this
// level nor in a later one.
//
// Thread safety and invariants: see the live table.

#ifndef GMT_SESSION_LIVE_LEVEL_H_
#define GMT_SESSION_LIVE_LEVEL_H_

#include <cstdint>

#include "session/layout.h"

namespace gmt::session {

struct LiveValue {
  uint64_t ticket = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint64_t time_ns = 0;
  uint32_t stack = 0;
  uint32_t forward_stack = 0;
  uint32_t thread = 0;
  Kind kind = Kind::kNone;
  Memory memory = Memory::kNone;
  uint8_t device = kNoDevice;
  uint8_t context = 0;
  uint16_t api = 0;
  uint16_t roles = 0;   // set of Role
  uint32_t layout = 0;  // id of a TensorLayout; blocks only; 0: unknown

  bool operator==(const LiveValue&) const = default;
};

class LiveLevel {
 public:
  constexpr LiveLevel() = default;
  // REQUIRES: count is a power of two and at least kGroupSize; keys and entries have that many
  // elements, initially zero.
  LiveLevel(std::atomic<uint64_t>* keys, LiveEntry* entries, uint64_t count)
      : keys_(keys), entries_(entries), group_mask_(count / kGroupSize - 1) {}

  uint64_t count() const { return (group_mask_ + 1) * kGroupSize; }
  std::atomic<uint64_t>& key(uint64_t place) const { return keys_[place]; }
  LiveEntry& entry(uint64_t place) const { return entries_[place]; }

  // Results that are not places. kNowhere: the key is in no level. kFurther: it may be in a later
  // one.
  static constexpr uint64_t kNowhere = ~uint64_t{0}, kFurther = kNowhere - 1;

  // Returns the place of the key, or kNowhere or kFurther if it is not in this level.
  uint64_t Locate(uint64_t key) const {
    const uint64_t home = Hash(key);
    for (uint64_t g = 0; g < kGroups; ++g) {
      const uint64_t first = ((home + g) & group_mask_) * kGroupSize;
      for (uint64_t i = first; i < first + kGroupSize; ++i) {
        const uint64_t seen = keys_[i].load(std::memory_order_acquire);
        if (seen == key) return i;
        if (seen == kKeyEmpty) return kNowhere;
      }
    }
    return kFurther;
  }

  // Returns a place for the caller to fill, or kFurther if none is free.
  uint64_t Claim(uint64_t key) const;
  void WriteEntry(uint64_t place, const LiveValue& live) const;
  // Returns false if the place no longer belongs to the key, or if its writer died while replacing
  // the entry.
  bool ReadEntry(uint64_t place, uint64_t key, LiveValue* live) const;

  // Prefetches the home group of a key.
  void Prepare(uint64_t key) const {
    const uint64_t first = (Hash(key) & group_mask_) * kGroupSize;
    __builtin_prefetch(&keys_[first], /*for writing*/ 1);
    __builtin_prefetch(&entries_[first], 1);  // the entry most likely used: few groups hold two
  }

  // Allocates memory for the level. Returns 0, or an errno value, in which case a part of it may
  // have memory. REQUIRES: the level is a section of a session that is mapped shared; the same
  // holds for Drop() and Empty().
  int Back() const;
  // Releases the memory. REQUIRES: no other thread accesses it.
  void Drop() const;
  // Makes the level empty, with zeroed memory. Returns 0 or an errno value.
  int Empty() const;

  static constexpr uint64_t kGroupSize = 8;
  static constexpr uint64_t kGroups = 16;  // maximum length of a probe
  // Bytes of an entry and its key.
  static constexpr uint64_t kStride = sizeof(uint64_t) + sizeof(LiveEntry);

 private:
  // Addresses differ in their middle bits. The multiplication moves the differences up, the shift
  // moves them down again.
  static uint64_t Hash(uint64_t key) {
    key *= 0x9e3779b97f4a7c15;
    return key ^ key >> 32;
  }
  uint64_t Bytes() const;

  std::atomic<uint64_t>* keys_ = nullptr;
  LiveEntry* entries_ = nullptr;
  uint64_t group_mask_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_LIVE_LEVEL_H_
