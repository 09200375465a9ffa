// collector/collector.h
//
// Collector: turns the session of one traced process into a recording.
//
//   session --RecoveringDrain--> records and corrections --Recorder--> RecordingOutput
//   clients <--StatusCopies, requests--> mailbox
//
// How a recording ends
//   E1  The end begins when the target is dead, announces that it is ending (Control.closing), no
//       client is attached to it any more (Control.attach_wanted), or SIGTERM stops the collector.
//   E2  The collector drains everything written so far, then writes a snapshot of the live set, the
//       losses and the facts, and flushes. From here on the file is readable whatever happens.
//   E3  Missing names are looked up: for up to a minute if the target is dead, but for only 60 % of
//       the time for which an ending target waits (its option exit_wait). In a container all
//       processes may die with the target. So a complete file without some names has priority over
//       the names, which a reader can look up itself.
//   E4  The collector writes index and footer, sets Control.finished and removes the session's
//       name.
//   The session stays for another collector, without `finished`, if the target lives on (SIGTERM to
//   the collector) or if the recording could not be completed.
//
// If the recording is deleted or truncated while it is written, it is started again in another file
// with what the ring still holds and the exact live set. Run() then ends early, and
// TakeNextOutput() returns the file for the next Collector of the same session. If no other file
// can be created, the collector keeps writing to the old one, and the session stays.
//
// Thread safety: one thread at a time; RequestStop() from any thread and from signal handlers.

#ifndef GMT_COLLECTOR_COLLECTOR_H_
#define GMT_COLLECTOR_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collector/clock.h"
#include "collector/devices/devices.h"
#include "collector/events/frame_namer.h"
#include "collector/events/oom_watch.h"
#include "collector/mailbox/mailbox.h"
#include "collector/output/output_file.h"
#include "collector/output/part_files.h"
#include "collector/output/recorder.h"
#include "collector/output/recording_output.h"
#include "collector/output/snapshot_policy.h"
#include "collector/recovering_drain.h"
#include "collector/sessions/session_info.h"
#include "collector/sessions/target.h"
#include "collector/sessions/target_files.h"
#include "collector/status_copies.h"
#include "session/options.h"
#include "session/session_map.h"

namespace gmt::collector {

// The time between two looks at a session: the minimum; the maximum while records arrive; the
// maximum while none do.
inline constexpr uint64_t kBusyWait = kMillisecond;
inline constexpr uint64_t kCalmWait = 8 * kMillisecond;
inline constexpr uint64_t kIdleWait = 50 * kMillisecond;

// Returns how long to wait after a look that found `records` records in a ring of `capacity`;
// `wait` is the previous result. A look costs as much as dozens of records, so waiting pays off
// while few arrive. If they fill more than a 64th of the ring per look, the next look must be soon.
constexpr uint64_t NextWait(uint64_t wait, uint64_t records, uint64_t capacity) {
  if (records > capacity / 64) return kBusyWait;
  const uint64_t most = records != 0 ? kCalmWait : kIdleWait;
  return wait * 2 < most ? wait * 2 : most;
}

// What a collector uses. Everything must outlive it.
struct CollectorDependencies {
  session::SessionMap session;
  Target* target = nullptr;
  Clock* clock = nullptr;
  // Returns whether the session lost part of its memory; may be empty.
  std::function<bool()> is_cut = nullptr;
  // Creates a file in which to continue after the first one was deleted or truncated. Empty if no
  // such file can be created.
  std::function<absl::StatusOr<std::unique_ptr<OutputFile>>()> next_output = nullptr;
  // What a reader must know about how this recording came to be; empty: nothing.
  std::string output_note = {};
  // Creates the source of device readings; empty: devices are not read. Called once, if the target
  // is alive.
  std::function<std::unique_ptr<DeviceSource>()> device_source = nullptr;
  // Exchanges status and requests with clients; null: no clients are served.
  control::Mailbox* mailbox = nullptr;
  // The recording's path, reported to clients; may be empty.
  std::string output_path = {};
  // The files of the parts of a bounded recording (docs/long-runs.md), including the output. Null:
  // the history is not bounded, whatever the options say.
  PartFiles* parts = nullptr;
  // The state of the HTTP server: "on at ADDRESS" or "off: REASON"; empty: it was not requested.
  std::string listen_note = {};
};

class Collector {
 public:
  // Writes the recording's header and first facts.
  static absl::StatusOr<std::unique_ptr<Collector>> Start(const CollectorDependencies& surroundings,
                                                          std::unique_ptr<OutputFile> output);

  // Drains the session until it ends. OK: the recording is complete. DATA_LOSS: its file was
  // deleted or truncated; see TakeNextOutput().
  absl::Status Run();
  // Returns the file in which to continue after DATA_LOSS; null if there is none.
  std::unique_ptr<OutputFile> TakeNextOutput() { return output_.TakeNext(); }

  // Looks at the session once. Returns true if there is more to read immediately.
  bool Round();
  // Performs E2 to E4 except removing the session's name. REQUIRES: the target is dead or ending,
  // or the collector was asked to stop.
  absl::Status Finish();

  void RequestStop() { stop_.store(true, std::memory_order_relaxed); }

  // Returns whether the target will not write to the session any more, so that the session's name
  // may be removed.
  bool TargetHasEnded();
  session::RingLosses losses() const { return drain_.losses(); }

 private:
  Collector(const CollectorDependencies& surroundings, SessionInfo info, OutputFile* output,
            std::unique_ptr<format::RecordingWriter> writer);

  TargetState CheckTarget();
  bool IsDetached() const;
  void WaitUntilDetached();
  bool IsCut() const { return deps_.is_cut && deps_.is_cut(); }
  uint64_t EndOfLossNs();
  void Deliver(const session::Record& record, uint64_t ticket);
  DeviceIdentity MakeIdentity(const session::Record& record) const;
  void SnapshotAtMark(const std::string& name, uint64_t t_ns);
  void SnapshotIfOutOfMemory(const session::Record& failed);
  std::string AddSnapshot(const std::string& name, const std::string& reason);
  bool MayBeRetried(const session::Record& refused);

  void SnapshotIfDue();
  void ServeMailbox(bool drained);
  void Publish(uint32_t kinds, bool drained);
  control::Reply HandleRequest(const control::Request& request, bool drained);
  absl::Status ChangeOptions(const std::string& text, uint64_t now_ns);

  void EndPartIfDue();
  void EndPart(const char* why);

  void RequestNames();
  void WriteNames();
  void FlushIfDue();
  void Flush(uint64_t now_ns);
  void AddLateFacts(const gmt::Exit& exit);
  void WriteDevices();
  std::string FactText(session::Fact fact) const;
  void AddSources(gmt::Facts* facts);
  gmt::Exit ExitOfTarget(TargetState state);
  uint64_t NamingBudget(TargetState state) const;

  CollectorDependencies deps_;
  SessionInfo info_;
  session::Options options_;
  RecordingOutput output_;
  const uint32_t attach_;  // the attach that is recorded; 0 if the session has no attach gate
  Recorder recorder_;
  RecoveringDrain drain_;
  TargetFiles files_;
  FrameNamer namer_;
  OomWatch oom_;
  Devices devices_;
  SnapshotPolicy policy_;
  StatusCopies copies_;

  uint64_t alive_ns_ = 0;  // when the target was last seen alive
  uint64_t flushed_ns_ = 0;
  uint64_t facts_due_ns_ = 0;
  std::atomic<bool> stop_{false};
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_COLLECTOR_H_
