// collector/events/live_model.h
//
// LiveModel: what is live after the events applied so far, keyed like the session's live table by
// (space, value).
//
// Apply() is idempotent: an event changes an entry only if it is newer (has a greater ticket). The
// same function therefore works for events in order and for replaying older events over a scan of
// the live table that already reflects some of them (docs/session.md, "Resynchronising").
//
// Example
//   LiveModel live;
//   live.Apply(record, ticket);
//   for (const auto& [place, value] : live.entries()) ...
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_EVENTS_LIVE_MODEL_H_
#define GMT_COLLECTOR_EVENTS_LIVE_MODEL_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "format/acquisition_history.h"
#include "session/live_table.h"
#include "session/record.h"

namespace gmt::collector {

struct Place {
  session::Space space = session::Space::kNone;
  uint64_t value = 0;  // address or handle

  bool operator==(const Place&) const = default;
  bool operator<(const Place& other) const {
    return std::tie(space, value) < std::tie(other.space, other.value);
  }
  template <typename H>
  friend H AbslHashValue(H h, const Place& p) {
    return H::combine(std::move(h), p.value ^ static_cast<uint64_t>(p.space) << 56);
  }
};

// What is live at a place, and where its users keep their own data about it, so that they need no
// table of places.
struct LiveModelEntry : session::LiveValue {
  uint32_t site = 0;  // Tally's index of its site + 1; 0: not counted
  // Its row in the recording; until that is written, the row of the place's previous entry.
  format::AcquisitionSlot slot = format::kNoAcquisitionSlot;
};

// Is notified of every change of a live model, in order.
class LiveObserver {
 public:
  virtual ~LiveObserver() = default;
  virtual void OnBorn(const Place& place, LiveModelEntry* live) = 0;
  virtual void OnEnded(const Place& place, const LiveModelEntry& live) = 0;
  // The driver refused the free that ended the entry.
  virtual void OnRestored(const Place& place, LiveModelEntry* live) = 0;
};

class LiveModel {
 public:
  using Entries = absl::flat_hash_map<Place, LiveModelEntry>;

  // Notifies `observer` from now on; it must outlive this. Copies of the model have the same
  // observer.
  void set_observer(LiveObserver* observer) { observer_ = observer; }

  // What an event refers to. Valid until the next change.
  struct Applied {
    // The slot of the entry that the event made, ended or describes; null if that is unknown.
    format::AcquisitionSlot* slot = nullptr;
    // The entry that it freed, or whose free it is the result of; null: none that is known.
    const LiveModelEntry* ended = nullptr;
    // The entries to which no later event refers: those of a context that it ended, or freed ones
    // whose result is not expected any more.
    absl::Span<const std::pair<Place, LiveModelEntry>> forgotten = {};
  };
  Applied Apply(const session::Record& record, uint64_t ticket);

  LiveModelEntry* Insert(const Place& place, const session::LiveValue& live);
  void Erase(const Place& place);
  // Returns the entry of a place, or null. Valid until the next change.
  LiveModelEntry* Find(const Place& place);
  const LiveModelEntry* Find(const Place& place) const;

  // Returns true once after a failed free whose allocation is not known here, but in the live
  // table.
  bool TakeUnknownUndo();

  const Entries& entries() const { return entries_; }

 private:
  Applied Acquire(const session::Record& record, uint64_t ticket);
  Applied Return(const session::Record& record, uint64_t ticket);
  Applied FinishFree(const session::Record& record, uint64_t ticket);
  // Keeps an entry that has been freed until the result is known.
  void AwaitResult(const Place& place, const LiveModelEntry& freed);
  Applied ResetContext(const session::Record& record, uint64_t ticket);
  Applied ApplyRole(const session::Record& record, uint64_t ticket);

  void Replace(const Place& place, LiveModelEntry* entry, bool is_new,
               const session::LiveValue& live);

  LiveObserver* observer_ = nullptr;
  Entries entries_;
  Entries being_freed_;   // by frees whose result is not known yet
  LiveModelEntry ended_;  // by the last event that ended one
  std::vector<std::pair<Place, LiveModelEntry>> forgotten_;
  bool unknown_undo_ = false;
};

// MakeLive() returns the entry that an acquiring record makes. MakeRecord() returns the record that
// made an entry, without what the live table does not keep: durations and totals.
session::LiveValue MakeLive(const session::Record& record, uint64_t ticket);
session::Record MakeRecord(const Place& place, const session::LiveValue& live);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_LIVE_MODEL_H_
