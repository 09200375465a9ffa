// collector/events/recovery.h
//
// Recovery: what brings the live model back to the truth after events were lost, without stopping
// the traced process.
//
//   tickets   ... 41 | 42 ... 90 lost | 91 ...... 200 ...... 212 ...
//                      the gap          H0        S0         S1
//                                       |- held --|- held ---|
//
//   1  records behind the gap are held back from the recording (from H0 on);
//   2  once the reader has caught up (S0: everything before it is decided), the live table is
//      scanned while the process goes on; S1 is the ring's tail after the scan;
//   3  the held records are replayed over the scan, each only where its ticket is newer. When all
//      tickets below S1 are read, the result is the exact live set of that moment (docs/session.md
//      has the argument);
//   4  what differs between it and the model as of H0 was lost in the gap: Resolve() says which
//      frees and allocations to put there, before the held records go their usual way.
//
// More losses meanwhile: the held records are released as they are and it begins anew behind the
// newest gap.
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

// What happened in a gap, as far as it can be told afterwards: entries that ended, and entries that
// came and are still live, in the order in which they were allocated.
struct Corrections {
  std::vector<std::pair<Place, session::LiveValue>> ended;
  std::vector<std::pair<Place, session::LiveValue>> appeared;
  // Still there, but what they are for changed.
  std::vector<std::pair<Place, session::LiveValue>> other_roles;
};

class Recovery {
 public:
  bool active() const { return active_; }
  bool scanned() const { return scanned_; }

  // Starts, or starts anew behind the position given; returns what was held.
  std::vector<HeldRecord> Begin(uint64_t position);
  void Hold(const session::Record& record, uint64_t ticket) { held_.push_back({record, ticket}); }
  size_t held() const { return held_.size(); }

  // REQUIRES: everything below `position` has been read, held or lost. `tail()` is asked after the
  // scan.
  template <typename Tail>
  void Scan(const session::LiveTable& table, Tail tail) {
    Begin(table);
    settles_at_ = tail();
  }

  // The table has changed in a way that no record will tell: it must be scanned again.
  void ForgetScan() { scanned_ = false; }

  // Whether Resolve() may be called: the reader is at `position`.
  bool Settled(uint64_t position) const { return scanned_ && position >= settles_at_; }

  // Ends the recovery. `model` is the live set as of the last record before the gap. *released gets
  // the held records.
  Corrections Resolve(const LiveModel& model, std::vector<HeldRecord>* released);

  // As Resolve() without a scan that settled: the records only.
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
