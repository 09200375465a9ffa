// collector/output/recorder.h
//
// Recorder: writes the recording. It keeps the live model in step with the events that it writes,
// so that replaying the file up to any event yields the live set that a snapshot there would show.
//
// Events around a gap
//   gap       t_ns and to_t_ns: the last known time before the loss and the first one after it
//   free      for what was live before the gap and not after it; at the gap's t_ns and with the API
//             "(lost)", because neither its time nor its caller is known
//   alloc     (or reserve, map ...) for what was allocated in the gap and is live after it; with
//             its own time, stack, size and API, which the live table keeps, but without duration.
//             Its t_ns is before the gap's to_t_ns, unlike that of ordinary events after a gap
//   Allocations that were made and freed inside a gap are unknown. A free of an allocation that is
//   not in the recording is kept.
//
// Errors: those of the writer; the first one is kept in status().
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_RECORDER_H_
#define GMT_COLLECTOR_OUTPUT_RECORDER_H_

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "collector/events/event_translator.h"
#include "collector/events/live_leaks.h"
#include "collector/events/live_model.h"
#include "collector/events/recovery.h"
#include "collector/events/segments.h"
#include "collector/events/stack_translator.h"
#include "collector/events/tally.h"
#include "collector/sessions/session_info.h"
#include "collector/sessions/target.h"
#include "format/recording_writer.h"
#include "session/ring.h"

namespace gmt::collector {

// Whether a snapshot contains everything that was live.
struct Exactness {
  std::string inexact_because;  // empty: it is exact
};

class Recorder {
 public:
  // `target` may be null (its threads then have no names); it must outlive this.
  Recorder(const session::SessionMap& session, const SessionInfo& info, const Target* target,
           std::unique_ptr<format::RecordingWriter> writer);

  // Adds one event as it came.
  void Add(const session::Record& record, uint64_t ticket);

  // Add a sample of a device's memory from outside the target: AddSample() writes an event and
  // shows the sample in all later snapshots, ShowSample() does only the latter.
  void AddSample(uint64_t time_ns, const gmt::Sample& sample);
  void ShowSample(const gmt::Sample& sample) {
    samples_[{sample.device(), sample.source()}] = sample;
  }

  // Add a range of lost tickets that ends before an event at `to_ns`, and then what happened in it.
  void AddGap(const session::RingReader::Lost& lost, uint64_t to_ns);
  void AddCorrections(const Corrections& corrections, uint64_t to_ns);

  // Adds a snapshot. A name that is already used gets a numeric suffix. Returns the name.
  std::string AddSnapshot(const std::string& wanted, const std::string& reason,
                          const Exactness& exactness, const session::RingLosses& losses);
  void AddFacts(const gmt::Facts& facts) { Keep(writer_->Add(facts)); }
  // Adds a mark that a client other than the target sets now.
  void AddMark(uint64_t time_ns, const std::string& name, std::optional<uint64_t> index);
  void AddSymbols(const gmt::Symbols& symbols);
  void AddLosses(const session::RingLosses& losses);

  // Continues in the next part of the recording, which begins with a summary of everything before
  // it: aggregates and live set. Returns the sink of the previous part; null on failure.
  std::unique_ptr<format::Sink> BeginPart(std::unique_ptr<format::Sink> sink,
                                          const gmt::Header& header, const gmt::Facts& facts,
                                          const Exactness& exactness,
                                          const session::RingLosses& losses);
  void AddAggregates();
  // Adds a point at which a reader may begin, if the writer wants one.
  void AddCheckpointIfDue(const Exactness& exactness, const session::RingLosses& losses);
  // Adds the sums at the end of a recording that has checkpoints.
  void AddLastCheckpoint(const Exactness& exactness, const session::RingLosses& losses);
  uint64_t bytes_of_part() const { return writer_->bytes_written(); }
  bool has_events_of_part() const { return writer_->events_written() > events_before_part_; }

  void Flush();
  absl::Status Finish();

  // Starts the search for leaks in what is recorded. `leaks` receives definitions separately
  // (WriterOptions::on_definitions).
  void WatchLeaks(std::shared_ptr<LiveLeaks> leaks) { leaks_ = std::move(leaks); }
  LiveLeaks* leaks() { return leaks_.get(); }  // null: no search for leaks

  LiveModel& live() { return live_; }
  const Tally& tally() const { return tally_; }
  StackTranslator& stacks() { return stacks_; }
  const EventTranslator& translator() const { return translator_; }
  format::DefinitionsBuilder* definitions() { return &writer_->definitions(); }
  const absl::Status& status() const { return status_; }

  uint64_t newest_ns() const { return newest_ns_; }  // of the events so far, CLOCK_MONOTONIC
  // Whether the program itself queried the free memory of its devices.
  bool saw_sample() const { return saw_sample_; }
  bool saw(session::Memory memory) const {
    return (seen_memory_ & 1u << static_cast<int>(memory)) != 0;
  }
  const std::bitset<256>& devices() const { return devices_; }
  // The last sample of each device and source.
  using Samples = std::map<std::pair<uint32_t, std::string>, gmt::Sample>;
  const Samples& samples() const { return samples_; }
  uint64_t snapshots() const { return snapshot_names_.size(); }
  uint64_t bytes_written() const { return writer_->bytes_written(); }

 private:
  void AddCheckpoint(const Exactness& exactness, const session::RingLosses& losses);
  gmt::Snapshot MakeSnapshot(const Exactness& exactness, const session::RingLosses& losses);
  std::string NewSnapshotName(const std::string& wanted);
  void AddThreadName(const session::Record& record);
  // Writes the names of all threads again, for a reader that begins here.
  void ForgetThreads();
  void Note(const session::Record& record);
  // Forgets the row of an entry to which no later event refers.
  void Forget(const Place& place, const LiveModelEntry& live);
  void AddRoles(const Place& place, LiveModelEntry* entry, int64_t t_ns);
  void Write(const format::Event& event, format::AcquisitionSlot* slot = nullptr);
  void Write(const format::Event& event, const gmt::Sample& sample);
  void Keep(absl::Status status);

  session::SessionMap session_;
  const Target* target_;
  std::unique_ptr<format::RecordingWriter> writer_;
  StackTranslator stacks_;
  EventTranslator translator_;
  Tally tally_;
  LiveModel live_;
  std::shared_ptr<LiveLeaks> leaks_;
  bool has_checkpoints_ = false;
  absl::Status status_;
  uint64_t newest_ns_;
  uint32_t seen_memory_ = 0;
  bool saw_sample_ = false;
  uint32_t last_thread_ = 0;
  absl::flat_hash_set<uint32_t> threads_;
  std::bitset<256> devices_;
  Samples samples_;
  std::set<std::string> snapshot_names_;
  uint64_t events_before_part_ = 0;
};

// Combines the counters of the session and of its reader into the message of the file.
gmt::Losses MakeLosses(const session::Control& control, const session::RingLosses& ring);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_RECORDER_H_
