// collector/collector.h
//
// Collector: one traced process's session becomes one recording.
//
//   session --SessionDrain--> records --Recovery--> records and corrections --Recorder--> recording
//
// The end
//   E1  The target is dead, says that it is ending (Control.closing), nobody is attached to it any
//       more (Control.attach_wanted), or the collector is told to stop (SIGTERM).
//   E2  Everything written so far is drained; a snapshot of the live set, losses and facts follow.
//       All of it is flushed: whatever happens from here on, the file can be read.
//   E3  Names that are still missing are looked up: as long as it takes when the target is dead,
//       but for no more than most of the time that an ending target waits (its option exit_wait).
//       In a container the end of the target can be the end of everything, so a complete file
//       without some names comes before all names: a reader looks them up itself.
//   E4  Index and footer; then Control.finished; then the session's name is removed.
//   While the target lives on (SIGTERM to the collector), or where the recording could not be
//   completed, the session stays for another collector: it has not been `finished`.
//
// A recording that is deleted or cut while it is written begins anew in another file, with what the
// ring still holds and the exact live set: Run() ends early, and TakeNextOutput() has the file for
// the next Collector of the same session. Where none can be made the old one is written on, and the
// session stays.
//
// Thread safety: one thread at a time, RequestStop() from any and from signal handlers.

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
#include "collector/control/desk.h"
#include "collector/devices/devices.h"
#include "collector/events/frame_namer.h"
#include "collector/events/oom_watch.h"
#include "collector/events/recovery.h"
#include "collector/events/trend.h"
#include "collector/output/history.h"
#include "collector/output/output_file.h"
#include "collector/output/part_files.h"
#include "collector/output/recorder.h"
#include "collector/output/snapshot_policy.h"
#include "collector/sessions/session_drain.h"
#include "collector/sessions/session_info.h"
#include "collector/sessions/target.h"
#include "collector/sessions/target_files.h"
#include "session/options.h"
#include "session/session_map.h"

namespace gmt::collector {

// Between two looks at a session: at least; at most while records come; at most.
inline constexpr uint64_t kBusyWait = kMillisecond;
inline constexpr uint64_t kCalmWait = 8 * kMillisecond;
inline constexpr uint64_t kIdleWait = 50 * kMillisecond;

// How long to wait after a look that found so many records in a ring of so many, the last wait having been
// `wait`. Each look costs as much as dozens of records, so it is worth waiting while few come; of a ring that
// fills by more than a 64th meanwhile the next look must be soon.
constexpr uint64_t NextWait(uint64_t wait, uint64_t records, uint64_t capacity) {
  if (records > capacity / 64) return kBusyWait;
  const uint64_t most = records != 0 ? kCalmWait : kIdleWait;
  return wait * 2 < most ? wait * 2 : most;
}

// What a collector works with. Everything must outlive it.
struct Surroundings {
  session::SessionMap session;
  Target* target = nullptr;
  Clock* clock = nullptr;
  // Whether the session lost part of its memory; may be empty.
  std::function<bool()> is_cut = nullptr;
  // Makes a file to go on in after the first one was taken away; may be empty: none can be made.
  std::function<absl::StatusOr<std::unique_ptr<OutputFile>>()> next_output = nullptr;
  // What a reader must know of how this recording came to be; empty: nothing.
  std::string output_note = {};
  // Makes what is asked for the memory of devices; may be empty: nobody is. Called once, of a target
  // that lives.
  std::function<std::unique_ptr<DeviceSource>()> device_source = nullptr;
  // Where clients are told how things stand and ask for snapshots; null: there is no such place.
  control::Desk* desk = nullptr;
  // The recording's path, for whoever asks; may be empty.
  std::string output_path = {};
  // Where the history is bounded (docs/long-runs.md): the files of its parts, the output's among
  // them. Null: it is not bounded, whatever the options say.
  PartFiles* parts = nullptr;
  // "on at ADDRESS" or "off: " and why, of HTTP; empty: it was not asked for.
  std::string listen_note = {};
};

class Collector {
 public:
  // Writes the recording's header and first facts.
  static absl::StatusOr<std::unique_ptr<Collector>> Start(const Surroundings& surroundings,
                                                          std::unique_ptr<OutputFile> output);

  // Drains until the end, however it comes. OK: the recording is complete. DATA_LOSS: its file was
  // taken away, and somewhere else is to be gone on, or nowhere.
  absl::Status Run();
  // Where to go on after DATA_LOSS; null: nowhere.
  std::unique_ptr<OutputFile> TakeNextOutput() { return std::move(next_output_); }

  // One look at the session. True while there is more to read at once.
  bool Round();
  // E2 to E4, without the session's name. The target must be dead or ending, or the collector told
  // to stop.
  absl::Status Finish();

  void RequestStop() { stop_.store(true, std::memory_order_relaxed); }

  // Whether the session's name may go: the target will not write to it any more.
  bool TargetHasEnded();
  session::RingLosses losses() const { return drain_.losses(); }

 private:
  Collector(const Surroundings& surroundings, SessionInfo info, OutputFile* output,
            std::unique_ptr<format::RecordingWriter> writer);

  TargetState LookAtTarget();
  bool IsDetached() const;
  void WaitUntilLetGo();
  bool IsCut() const { return around_.is_cut && around_.is_cut(); }
  bool OutputIsWritable();
  absl::Status RetryOutput();
  absl::Status CheckOutputIfDue();
  absl::Status CheckOutput();
  bool ReleaseUnrecovered();
  uint64_t EndOfLossNs();
  std::string OutputNote() const;
  void DrainSome(TargetState state, bool* more);
  void Lose(const session::RingReader::Lost& lost);
  void Recover(bool caught_up);
  void Deliver(const session::Record& record, uint64_t ticket);
  DeviceIdentity MakeIdentity(const session::Record& record) const;
  void SnapshotAtMark(const std::string& name, uint64_t t_ns);
  std::string AddSnapshot(const std::string& name, const std::string& reason);
  bool MayBeRetried(const session::Record& refused);
  void Release(const std::vector<HeldRecord>& held);
  void WriteGaps(uint64_t to_ns);
  Exactness ExactnessNow() const;

  void LookAtTrends();
  void SnapshotIfDue();
  void ServeDesk(bool drained);
  void Publish(uint32_t wishes, bool drained);
  control::Status MakeStatus(uint64_t now_ns, bool drained);
  void AddDevices(control::Status* status) const;
  std::vector<control::SiteRow> CopySites();
  gmt::LeakAnswer AnswerOfLeaks();
  control::Reply Carry(const control::Request& request, bool drained);
  absl::Status ChangeOptions(const std::string& text, uint64_t now_ns);

  // The parts of a bounded history (collector_parts.cc).
  void EndPartIfDue();
  void EndPart(const char* why);
  bool DropOldestPart();
  void DropParts();
  absl::Status PublishPart();

  void AskForNames();
  void WriteNames();
  void FlushIfDue();
  void Flush(uint64_t now_ns);
  void AddLateFacts(const gmt::Exit& exit);
  void WriteDevices();
  std::string FactText(session::Fact fact) const;
  void AddSources(gmt::Facts* facts);
  gmt::Exit ExitOfTarget(TargetState state);
  uint64_t NamingBudget(TargetState state) const;

  Surroundings around_;
  SessionInfo info_;
  session::Options options_;
  OutputFile* output_;     // owned by the writer
  const uint32_t attach_;  // the attach that this records; 0 where there is no door
  SessionDrain drain_;
  Recovery recovery_;
  Recorder recorder_;
  TargetFiles files_;
  FrameNamer namer_;
  OomWatch oom_;
  Devices devices_;
  SnapshotPolicy policy_;
  RateMeter rate_;
  Trend trend_;
  uint64_t copies_ = 0, copy_ns_ = 0;  // that were made for clients, and what they took

  std::vector<session::RingReader::Lost> gaps_;  // not written yet
  bool recovered_ = false;  // the live set came from the live table at least once
  uint64_t alive_ns_ = 0;   // when the target was last seen alive
  uint64_t flushed_ns_ = 0;
  uint64_t facts_due_ns_ = 0;
  uint64_t checked_ns_ = 0;
  std::optional<History> history_;
  std::unique_ptr<format::Sink> ending_;  // of the part before, while it is not written whole
  OutputFile* ending_file_ = nullptr;
  bool unpublished_ = false;     // the newest part does not have the recording's name yet
  uint64_t parts_retry_ns_ = 0;  // when to try again what failed
  std::string parts_problem_;    // why the history could not be bounded, the last time
  std::string taken_away_;       // what was done to the output that is written on
  std::unique_ptr<OutputFile> next_output_;
  std::atomic<bool> stop_{false};
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_COLLECTOR_H_
