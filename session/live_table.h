// session/live_table.h
//
// LiveTable: the current allocations, keyed by (space, value), in shared memory. It gives a
// collector that starts late, restarts or lost events an exact live set. The collector drains the
// ring up to a ticket S, scans the table, and then applies the records from S on, each only if its
// ticket is newer than the entry's.
//
// The table has several levels, each four times the size of the previous one
// (session/live_level.h). A key goes into the first level that has room near its home. A level
// after the first has no memory and must not be accessed until a key found no place in any level
// before it. The writer of that key then allocates the level's memory:
//
//   level 0   65,536   has memory from the start    .
//   level 1  262,144   none yet                      | Control::live_levels: 0, 1, 2 ...
//   level 2    1 Mi    none yet                      .
//
// Writers that find the table full at the same time all allocate the same memory, and the first one
// announces it. If the allocation fails, growth ends for all threads: the failing writer, and any
// writer that would have succeeded a moment later, release what they allocated. So no thread waits,
// and no thread releases memory that another one uses.
//
// Invariants, for each level
//   T1  A key becomes visible only after its entry is complete. The version of an entry is odd
//       while the entry changes under its key.
//   T2  Calls for the same (space, value) do not overlap, because a driver never returns an address
//       that is still being freed. If a program violates this, entries may be stale, but nothing
//       crashes.
//   T3  A writer killed at any instruction leaves at most one claimed key without an entry. A
//       writer killed while it allocates memory for a level leaves that to the next writer.
//   T4  A key is in at most one level, and only if its probes of all earlier levels ended without a
//       never-used key.
//
// Thread safety: all methods may be called from any thread, without a lock. Scan() sees each entry
// consistently, but not all entries at the same instant.
// Cost: a further level is accessed only if the probes of all earlier ones found no never-used key.

#ifndef GMT_SESSION_LIVE_TABLE_H_
#define GMT_SESSION_LIVE_TABLE_H_

#include <cstdint>

#include "session/layout.h"
#include "session/live_level.h"

namespace gmt::session {

class LiveTable {
 public:
  enum class Result { kDone, kFull, kUnrepresentable };

  constexpr LiveTable() = default;
  // A table that does not grow. REQUIRES: as for LiveLevel.
  LiveTable(std::atomic<uint64_t>* keys, LiveEntry* entries, uint64_t count)
      : levels_{{keys, entries, count}} {}
  // Adds a level to a table that can grow. `control` holds the number of levels that have memory.
  // REQUIRES: `bytes` holds `count` keys followed by `count` entries; at most kLiveLevels calls.
  void AddLevel(Control* control, char* bytes, uint64_t count) {
    auto* keys = reinterpret_cast<std::atomic<uint64_t>*>(bytes);
    control_ = control;
    levels_[++further_] = {keys, reinterpret_cast<LiveEntry*>(keys + count), count};
  }

  // Prefetches what a call for this key will access. The table covers all live allocations, so it
  // is colder than the code that frees them.
  void Prepare(Space space, uint64_t value) const;

  // Adds or replaces an entry.
  Result Insert(Space space, uint64_t value, const LiveValue& live) const;
  // Removes an entry. Returns true and sets *live if it was present.
  bool Erase(Space space, uint64_t value, LiveValue* live) const;
  // The same for callers that do not need the old value.
  bool Erase(Space space, uint64_t value) const;
  bool Find(Space space, uint64_t value, LiveValue* live) const;

  // Additional references to an entry; a new entry has none. Return false if there is no entry, or
  // no reference to drop. Replacing or erasing an entry discards its references.
  bool AddReference(Space space, uint64_t value) const;
  bool DropReference(Space space, uint64_t value) const;

  // The set of session::Role of an entry before and after a change, and where the entry is.
  struct Roles {
    uint16_t before = 0, after = 0;
    uint8_t device = kNoDevice;
    Memory memory = Memory::kNone;
  };
  // Adds `role` to the roles of an entry. Returns false if there is no entry.
  bool AddRole(Space space, uint64_t value, Role role, Roles* roles) const;
  // Like AddRole for kParameter and the roles in `more`, unless a node saves the entry (kSaved).
  bool AddParameter(Space space, uint64_t value, uint32_t more, Roles* roles) const;
  // Like AddRole for kSaved: they count the nodes that save an entry, and the role ends with the
  // last one. Nodes are not counted for a parameter. AddSaver is for entries without references.
  bool AddSaver(Space space, uint64_t value, Roles* roles) const;
  bool DropSaver(Space space, uint64_t value, Roles* roles) const;

  // Calls visit(space, value, live) for each entry.
  template <typename Visit>
  void Scan(Visit visit) const {
    const uint32_t last = Backed();
    for (uint32_t n = 0; n <= last; ++n) ScanLevel(levels_[n], visit);
  }

  // Returns the bytes of the levels after the first that have memory.
  uint64_t FurtherBytes() const;
  // Empties the levels after the first that have memory and may still hold old data. Returns 0 or
  // an errno value. REQUIRES: no thread uses the table.
  int EmptyFurtherLevels() const;

 private:
  // level == nullptr: the key is in no level.
  struct Place {
    const LiveLevel* level;
    uint64_t index;
  };

  static bool IsLive(uint64_t key) { return key != kKeyEmpty && key < kKeyClaimed; }
  static bool MakeKey(Space space, uint64_t value, uint64_t* key);
  // Returns the number of levels after the first that may be accessed.
  uint32_t Backed() const;
  Place Locate(uint64_t key) const;
  Place LocateFurther(uint64_t key) const;
  template <typename Change>
  bool ChangeRoles(Space space, uint64_t value, Roles* roles, Change change) const;
  bool Grow(uint32_t level) const;
  Place Claim(uint64_t key) const;

  template <typename Visit>
  static void ScanLevel(const LiveLevel& level, Visit visit) {
    for (uint64_t i = 0; i < level.count(); ++i) {
      LiveValue live;
      const uint64_t key = level.key(i).load(std::memory_order_acquire);
      if (IsLive(key) && level.ReadEntry(i, key, &live))
        visit(static_cast<Space>(key >> 60), key & kKeyValueMask, live);
    }
  }

  LiveLevel levels_[1 + kLiveLevels];
  Control* control_ = nullptr;
  uint32_t further_ = 0;  // number of levels after the first, with or without memory
};

}  // namespace gmt::session

#endif  // GMT_SESSION_LIVE_TABLE_H_
