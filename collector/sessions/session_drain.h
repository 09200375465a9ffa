// collector/sessions/session_drain.h
//
// SessionDrain: reads the ring of a live session record by record. It decides what RingReader
// leaves open: how long to wait for a record that is being written, and when the live table must be
// scanned because the records alone are incomplete.
//
// A record that is being written
//   D1  is waited for while the process is alive: its thread may just be preempted, or stopped by a
//       debugger;
//   D2  is given up (a hole) after one second if the ring is half a lap ahead of it, because newer
//       records would be lost soon;
//   D3  is given up immediately if the process is dead, and after a short grace period if it is
//       ending.
//
// A writer given up under D2 or D3 may still complete its record. A writer that found its slot
// taken updates the live table before it reports so. In both cases the table changes without the
// reader noticing; TakeDisturbed() detects this.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_SESSIONS_SESSION_DRAIN_H_
#define GMT_COLLECTOR_SESSIONS_SESSION_DRAIN_H_

#include <cstdint>
#include <vector>

#include "collector/clock.h"
#include "session/ring.h"
#include "session/session_map.h"

namespace gmt::collector {

// Whether the traced process goes on, as far as is known.
enum class TargetState { kRunning, kEnding, kDead };

class SessionDrain {
 public:
  using Outcome = session::RingReader::Outcome;
  using Lost = session::RingReader::Lost;

  // `clock` must outlive this.
  SessionDrain(const session::SessionMap& session, Clock* clock)
      : control_(&session.control()),
        reader_(session.ring_reader()),
        clock_(clock),
        abandoned_seen_(session.control().attach_counters[session::kAbandoned].load()) {}

  // Like RingReader::Next(), but returns kLost for a record that was waited for long enough.
  Outcome Next(TargetState target, session::Record* record, uint64_t* ticket, Lost* lost);

  // Returns true once after the live table may have changed without a record that was or will be
  // delivered.
  bool TakeDisturbed();

  uint64_t position() const { return reader_.position(); }
  uint64_t tail() const { return reader_.tail(); }
  uint64_t capacity() const { return reader_.capacity(); }
  session::RingLosses losses() const { return reader_.losses(); }

 private:
  struct Watched {
    uint64_t ticket;       // whose slot is watched
    uint64_t commit_word;  // as it was when the ticket was given up
  };

  bool HasWaitedLongEnough(TargetState target);
  void Watch(uint64_t ticket);

  const session::Control* control_;
  session::RingReader reader_;
  Clock* clock_;
  std::vector<Watched> watched_;
  uint64_t abandoned_seen_;
  uint64_t pending_since_ns_ = 0;  // 0: no record is pending
  uint64_t pending_tail_ = 0;      // tickets below it were taken before pending_since_ns_
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_DRAIN_H_
