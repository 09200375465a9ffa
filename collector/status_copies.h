// collector/status_copies.h
//
// StatusCopies: makes the copies of a recording's state that clients of the control socket and of
// the HTTP server receive (collector/mailbox/mailbox.h).
//
// Thread safety: only in the draining thread.

#ifndef GMT_COLLECTOR_STATUS_COPIES_H_
#define GMT_COLLECTOR_STATUS_COPIES_H_

#include <cstdint>
#include <vector>

#include "collector/clock.h"
#include "collector/devices/devices.h"
#include "collector/events/rates.h"
#include "collector/mailbox/mailbox.h"
#include "collector/output/output_file.h"
#include "collector/output/recorder.h"
#include "collector/recovering_drain.h"
#include "session/session_map.h"

namespace gmt::collector {

class StatusCopies {
 public:
  // What is recorded; everything must outlive this.
  struct Sources {
    session::SessionMap session;
    Clock* clock = nullptr;
    const RecoveringDrain* drain = nullptr;
    const Devices* devices = nullptr;
    Recorder* recorder = nullptr;
  };
  explicit StatusCopies(const Sources& sources) : sources_(sources) {}

  // Call this in each round; rates are computed from it.
  void UpdateTrends();
  // Returns a copy with all of `kinds`, a set of control::Mailbox::CopyKind; for kWritten,
  // everything must have been written before. `began_ns`: when the work for this copy began.
  // `drained`: the recorder has all events of the session so far.
  control::Copy Make(uint32_t kinds, uint64_t began_ns, bool drained, const OutputFile& output,
                     const Exactness& exactness);

 private:
  control::Status MakeStatus(uint64_t now_ns, bool drained, const OutputFile& output);
  void AddHeaps(uint64_t now_ns, control::Status* status) const;
  void AddDevices(control::Status* status) const;
  std::vector<control::SiteRow> CopySites();
  gmt::LeakAnswer CurrentLeakAnswer();

  const Sources sources_;
  RateMeter rate_;
  GrowthRates growth_;
  uint64_t copies_ = 0, copy_ns_ = 0;  // made so far, and the time that they took
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_STATUS_COPIES_H_
