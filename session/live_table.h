// session/live_table.h
//
// LiveTable: what is allocated right now, keyed by (space, value), in shared memory. With it a
// collector that starts late, restarts or lost events gets an exact live set: it drains the ring to
// a ticket S, scans the table, and applies the ring's records from S on, each only where its ticket
// is newer than the entry's.
//
// The table is a few levels, each four times the one before (session/live_level.h). A key is placed
// in the first that has room near its home. A level behind the first has no memory, and may not be
// touched, until all before it had no place for a key. Then the writer that has it at hand takes
// memory for it:
//
//   level 0   65,536   has memory from the start    .
//   level 1  262,144   none yet                      | Control::live_levels: 0, 1, 2 ...
//   level 2    1 Mi    none yet                      .
//
// Writers that find the table full at the same time take the same memory; who is first says so. Where
// there is none the growth ends, for all: who failed, and who would have succeeded a moment later,
// give back what they took. So nobody waits, and nobody takes memory away that another one uses.
//
// Invariants, for each level
//   T1  A key becomes visible after its entry is whole; an entry that changes under its key has an
//       odd version meanwhile.
//   T2  Calls for one (space, value) do not overlap: a driver never hands out an address that is
//       being freed.
//       (If a program breaks that, entries may be stale; nothing crashes.)
//   T3  A writer killed at any instruction leaves at most one claimed key, which holds no entry.
//       Killed while it takes memory for a level it leaves the level to the next one.
//   T4  A key is in one level at most, and only if no level before had a never-used key on its way.
//
// Thread safety: all methods from any thread, without a lock; Scan() sees each entry whole, not all
// of one instant.
// Cost: a further level is looked at only where a probe of all before it ended at no never-used key.

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
  // One that does not grow. REQUIRES: as LiveLevel.
  LiveTable(std::atomic<uint64_t>* keys, LiveEntry* entries, uint64_t count)
      : levels_{{keys, entries, count}} {}
  // The next level of one that grows: `control` says which of them have memory. REQUIRES: `bytes` of
  // `count` keys and behind them `count` entries; at most kLiveLevels calls.
  void AddLevel(Control* control, char* bytes, uint64_t count) {
    auto* keys = reinterpret_cast<std::atomic<uint64_t>*>(bytes);
    control_ = control;
    levels_[++further_] = {keys, reinterpret_cast<LiveEntry*>(keys + count), count};
  }

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

  // What an entry is for (session::Role), as it was before and is after a change; and where it lies.
  struct Roles {
    uint16_t before = 0, after = 0;
    uint8_t device = kNoDevice;
    Memory memory = Memory::kNone;
  };
  // Adds `role` to what it is for. False: it is not there.
  bool AddRole(Space space, uint64_t value, Role role, Roles* roles) const;
  // The same for kParameter and what `more` has beside it, unless a node keeps the entry (kSaved).
  bool AddParameter(Space space, uint64_t value, uint32_t more, Roles* roles) const;
  // The same for kSaved: one more node, or one less, keeps it; the role ends with the last. Nodes are
  // not counted for an entry that is a parameter. AddSaver is for entries without references.
  bool AddSaver(Space space, uint64_t value, Roles* roles) const;
  bool DropSaver(Space space, uint64_t value, Roles* roles) const;

  // Calls visit(space, value, live) for each entry.
  template <typename Visit>
  void Scan(Visit visit) const {
    const uint32_t last = Backed();
    for (uint32_t n = 0; n <= last; ++n) ScanLevel(levels_[n], visit);
  }

  // Of the levels behind the first that have memory.
  uint64_t FurtherBytes() const;
  // Has the levels behind the first empty that have memory, where they kept what stood there. 0 or
  // errno. REQUIRES: nobody uses the table.
  int EmptyFurtherLevels() const;

 private:
  // nullptr: nowhere.
  struct Place {
    const LiveLevel* level;
    uint64_t index;
  };

  static bool IsLive(uint64_t key) { return key != kKeyEmpty && key < kKeyClaimed; }
  static bool MakeKey(Space space, uint64_t value, uint64_t* key);
  // Levels behind the first that may be touched.
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
  uint32_t further_ = 0;  // levels behind the first, with memory or without
};

}  // namespace gmt::session

#endif  // GMT_SESSION_LIVE_TABLE_H_
