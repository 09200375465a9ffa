// session/live_table.h
//
// LiveTable: what is allocated right now, keyed by (space, value), in shared memory. With it a
// collector that starts late, restarts or lost events gets an exact live set: it drains the ring to
// a ticket S, scans the table, and applies the ring's records from S on, each only where its ticket
// is newer than the entry's.
//
// Open addressing in groups of eight keys (one cache line). A probe looks through at most kGroups
// groups and ends early at a group that still has a never-used key: such a key never comes back, so
// nothing was placed behind it.
//
// Invariants
//   T1  A key becomes visible after its entry is whole; an entry that changes under its key has an
//       odd version meanwhile.
//   T2  Calls for one (space, value) do not overlap: a driver never hands out an address that is
//       being freed.
//       (If a program breaks that, entries may be stale; nothing crashes.)
//   T3  A writer killed at any instruction leaves at most one claimed key, which holds no entry.
//
// Thread safety: all methods from any thread, without a lock; Scan() sees each entry whole, not all
// of one instant.

#ifndef GMT_SESSION_LIVE_TABLE_H_
#define GMT_SESSION_LIVE_TABLE_H_

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

  bool operator==(const LiveValue&) const = default;
};

class LiveTable {
 public:
  enum class Result { kDone, kFull, kUnrepresentable };

  constexpr LiveTable() = default;
  // REQUIRES: count is a power of two, at least 8; keys and entries have that many elements, zero
  // at first.
  LiveTable(std::atomic<uint64_t>* keys, LiveEntry* entries, uint64_t count)
      : keys_(keys), entries_(entries), group_mask_(count / kGroupSize - 1) {}

  // Has what a call for this key will touch brought near: a table of all that is live is colder than
  // the code that frees it.
  void Prepare(Space space, uint64_t value) const;

  // Adds or replaces.
  Result Insert(Space space, uint64_t value, const LiveValue& live) const;
  // True, with *live set, where it was there.
  bool Erase(Space space, uint64_t value, LiveValue* live) const;
  // The same for who knows what it was.
  bool Erase(Space space, uint64_t value) const;
  bool Find(Space space, uint64_t value, LiveValue* live) const;

  // Further references to an entry, which begins with none. False: it is not there, or there is
  // none to drop. A replacement or an erasure forgets them.
  bool AddReference(Space space, uint64_t value) const;
  bool DropReference(Space space, uint64_t value) const;

  // Calls visit(space, value, live) for each entry.
  template <typename Visit>
  void Scan(Visit visit) const {
    for (uint64_t i = 0; i < (group_mask_ + 1) * kGroupSize; ++i) {
      LiveValue live;
      const uint64_t key = keys_[i].load(std::memory_order_acquire);
      if (IsLive(key) && ReadEntry(i, key, &live))
        visit(static_cast<Space>(key >> 60), key & kKeyValueMask, live);
    }
  }

  static constexpr uint64_t kGroupSize = 8;
  static constexpr uint64_t kGroups = 16;  // a probe's length at most

 private:
  static constexpr uint64_t kNowhere = ~uint64_t{0};

  static bool IsLive(uint64_t key) { return key != kKeyEmpty && key < kKeyClaimed; }
  static bool MakeKey(Space space, uint64_t value, uint64_t* key);
  uint64_t Locate(uint64_t key) const;
  uint64_t Claim(uint64_t key) const;
  void WriteEntry(uint64_t place, const LiveValue& live) const;
  bool ReadEntry(uint64_t place, uint64_t key, LiveValue* live) const;

  std::atomic<uint64_t>* keys_ = nullptr;
  LiveEntry* entries_ = nullptr;
  uint64_t group_mask_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_LIVE_TABLE_H_
