// session/live_level.h
//
// LiveLevel: one table of the live table (session/live_table.h). Open addressing in groups of eight
// keys (one cache line). A probe looks through at most kGroups groups and ends early at a group that
// still has a never-used key: such a key never comes back, so nothing was placed behind it, neither
// in this level nor in a further one.
//
// Thread safety and invariants: as the live table's.

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
  uint32_t layout = 0;  // id of a TensorLayout; blocks only; 0: not known

  bool operator==(const LiveValue&) const = default;
};

class LiveLevel {
 public:
  constexpr LiveLevel() = default;
  // REQUIRES: count is a power of two, at least kGroupSize; keys and entries have that many elements,
  // zero at first.
  LiveLevel(std::atomic<uint64_t>* keys, LiveEntry* entries, uint64_t count)
      : keys_(keys), entries_(entries), group_mask_(count / kGroupSize - 1) {}

  uint64_t count() const { return (group_mask_ + 1) * kGroupSize; }
  std::atomic<uint64_t>& key(uint64_t place) const { return keys_[place]; }
  LiveEntry& entry(uint64_t place) const { return entries_[place]; }

  // What is no place: it is nowhere; it may be in a further level.
  static constexpr uint64_t kNowhere = ~uint64_t{0}, kFurther = kNowhere - 1;

  // Where the key is; kNowhere or kFurther where it is not here.
  uint64_t Locate(uint64_t key) const {
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
    return kFurther;
  }

  // A place that is the caller's to fill; kFurther where none is free.
  uint64_t Claim(uint64_t key) const;
  void WriteEntry(uint64_t place, const LiveValue& live) const;
  // False where it is not the key's any more, or its writer died in the middle of a replacement.
  bool ReadEntry(uint64_t place, uint64_t key, LiveValue* live) const;

  // Has the home of a key brought near.
  void Prepare(uint64_t key) const {
    const uint64_t first = (Hash(key) & group_mask_) * kGroupSize;
    __builtin_prefetch(&keys_[first], /*for writing*/ 1);
    __builtin_prefetch(&entries_[first], 1);  // the usual one: few groups have two
  }

  // Puts memory behind it. 0, or errno, and a part of it may have some. REQUIRES: the level is a
  // section of a session that is mapped shared; as are the following.
  int Back() const;
  // Takes the memory away. REQUIRES: nobody looks at it.
  void Drop() const;
  // Has it empty, with memory. 0 or errno.
  int Empty() const;

  static constexpr uint64_t kGroupSize = 8;
  static constexpr uint64_t kGroups = 16;  // a probe's length at most
  // Bytes of an entry and its key.
  static constexpr uint64_t kStride = sizeof(uint64_t) + sizeof(LiveEntry);

 private:
  // Addresses differ in their middle bits; the multiplication carries those up, the shift brings them
  // back down.
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
