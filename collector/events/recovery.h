// collector/events/recovery.h
//
// Recovery: makes the live model correct again after events were lost, without stopping the traced
// process.
//
//   tickets   ... 41 | 42 ... 90 lost | 91 ...... 200 ...... 212 ...
//                      the gap          H0        S0         S1
//                                       |- held --|- held ---|
//
//   1  Records after the gap (from H0 on) are held back from the recording.
//   2  When the reader has caught up (S0: everything before it is decided), the live table is
//      scanned while the process runs on. S1 is the ring's tail after the scan.
//   3  The held records are replayed over the scan, each only if its ticket is newer. When all
//      tickets below S1 have been read, the result is the exact live set of that moment
//      (docs/session.md has the argument).
//   4  The differences between it and the model as of H0 were lost in the gap. Resolve() returns
//      the frees and allocations to insert there before the held records are delivered.
//
// If more events are lost meanwhile, the held records are released as they are and the recovery
// starts again after the newest gap.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_EVENTS_RECOVERY_H_
#define GMT_COLLECTOR_EVENTS_RECOVERY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "collector/events/live_model.h"
#include "session/live_table.h"
#include "session/record.h"

namespace gmt::collector {

struct HeldRecord {
  session::Record record;
  uint64_t ticket;
};

// What happened in a gap, as far as it can be reconstructed: entries that ended, and entries that
// appeared and are still live, in the order of their allocation.
struct Corrections {
  std::vector<std::pair<Place, LiveModelEntry>> ended;
  std::vector<std::pair<Place, LiveModelEntry>> appeared;
  // Still live, but with other roles.
  std::vector<std::pair<Place, LiveModelEntry>> other_roles;
};

class Recovery {
 public:
  bool active() const { return active_; }
  bool scanned() const { return scanned_; }

  // Starts, or starts again after `position`; returns the records held so far.
  std::vector<HeldRecord> Begin(uint64_t position);
  void Hold(const session::Record& record, uint64_t ticket) { held_.push_back({record, ticket}); }
  size_t held() const { return held_.size(); }

  // REQUIRES: everything below `position` has been read, held or lost. `tail()` is called after the
  // scan.
  template <typename Tail>
  void Scan(const session::LiveTable& table, Tail tail) {
    Begin(table);
    settles_at_ = tail();
  }

  // Discards the scan, because the table has changed without a record; it must be scanned again.
  void ForgetScan() { scanned_ = false; }

  // Whether Resolve() may be called; `position` is that of the reader.
  bool Settled(uint64_t position) const { return scanned_ && position >= settles_at_; }

  // Ends the recovery and moves the held records to *released. `model` is the live set as of the
  // last record before the gap.
  Corrections Resolve(const LiveModel& model, std::vector<HeldRecord>* released);

  // Ends the recovery without a settled scan; returns the held records.
  std::vector<HeldRecord> GiveUp();

 private:
  void Begin(const session::LiveTable& table);

  bool active_ = false, scanned_ = false;
  uint64_t first_held_ = 0;  // H0
  uint64_t settles_at_ = 0;  // S1
  std::vector<HeldRecord> held_;
  LiveModel truth_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_RECOVERY_H_
