// collector/recovering_drain.h
//
// RecoveringDrain: delivers the records of a session in order, and repairs the live set after a
// loss.
//
//   session --SessionDrain--> records ----------------------> deliver()
//                                |  after a loss
//                                `--held back--> Recovery --> gaps and corrections to the recorder,
//                                                             then what was held to deliver()
//
// Thread safety: only in the draining thread.

#ifndef GMT_COLLECTOR_RECOVERING_DRAIN_H_
#define GMT_COLLECTOR_RECOVERING_DRAIN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "collector/clock.h"
#include "collector/events/recovery.h"
#include "collector/output/recorder.h"
#include "collector/sessions/session_drain.h"
#include "session/session_map.h"

namespace gmt::collector {

class RecoveringDrain {
 public:
  struct Dependencies {
    session::SessionMap session;
    Clock* clock = nullptr;
    Recorder* recorder = nullptr;
    // Returns whether the session lost part of its memory.
    std::function<bool()> is_cut;
    // Receives each record. It may call Recover().
    std::function<void(const session::Record&, uint64_t ticket)> deliver;
    // Returns the end of a loss that no record follows.
    std::function<uint64_t()> end_of_loss_ns;
  };
  explicit RecoveringDrain(const Dependencies& dependencies)
      : deps_(dependencies), drain_(deps_.session, deps_.clock) {}

  // Reads at most 65,536 records. Returns whether there is more to read immediately.
  bool DrainSome(TargetState state);
  // Recovers the live set, because a record has shown that it is not exact.
  void Recover() { Release(recovery_.Begin(drain_.position())); }
  // Delivers what is held back, after the gap, because the live table cannot be used or does not
  // settle. Returns whether anything was held back.
  bool GiveUp();

  bool recovering() const { return recovery_.active(); }
  // Whether a snapshot would be exact now.
  Exactness exactness() const;

  // See session/ring.h.
  uint64_t position() const { return drain_.position(); }
  uint64_t tail() const { return drain_.tail(); }
  uint64_t capacity() const { return drain_.capacity(); }
  session::RingLosses losses() const { return drain_.losses(); }

 private:
  void Lose(const session::RingReader::Lost& lost);
  void Advance(bool caught_up);
  void Release(const std::vector<HeldRecord>& held);
  void WriteGaps(uint64_t to_ns);

  const Dependencies deps_;
  SessionDrain drain_;
  Recovery recovery_;
  std::vector<session::RingReader::Lost> gaps_;  // not written yet
  bool recovered_ = false;  // the live set came from the live table at least once
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_RECOVERING_DRAIN_H_
