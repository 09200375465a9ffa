// collector/output/recorder.h
//
// Recorder: what goes into the recording. It keeps the live model in step with the events that it
// writes, so that a reader who replays the file up to any event has the live set that a snapshot
// there would show.
//
// Events around a gap
//   gap       t_ns and to_t_ns: the last time known before the loss and the first one behind it
//   free      of what was live before the gap and was not behind it; at the gap's t_ns, with the
//             API "(lost)", because neither its time nor its caller is known
//   alloc     (or reserve, map ...) of what came inside the gap and was still live behind it: with
//             its own time, stack, size and API, which the live table knows; without a duration.
//             Its t_ns lies before the gap's to_t_ns, as no ordinary event behind a gap does
//   Allocations that came and went inside a gap are not known. A free of one that is not in the
//   recording is kept.
//
// Errors: of the writer; the first is kept in status().
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
#include "collector/events/stack_translator.h"
#include "collector/events/tally.h"
#include "collector/sessions/session_info.h"
#include "collector/sessions/target.h"
#include "format/recording_writer.h"
#include "session/ring.h"

namespace gmt::collector {

// Whether a snapshot holds everything that was live.
struct Exactness {
  std::string inexact_because;  // empty: it is exact
};

class Recorder {
 public:
  // `target` may be null (its threads then have no names); it must outlive this.
  Recorder(const session::SessionMap& session, const SessionInfo& info, const Target* target,
           std::unique_ptr<format::RecordingWriter> writer);

  // One event, as it came.
  void Add(const session::Record& record, uint64_t ticket);

  // What somebody beside the target says of a device's memory: an event, and what snapshots from now
  // on show, or the latter alone.
  void AddSample(uint64_t time_ns, const gmt::Sample& sample);
  void ShowSample(const gmt::Sample& sample) {
    samples_[{sample.device(), sample.source()}] = sample;
  }

  // A stretch of lost tickets that ends before an event at `to_ns`, then what happened inside it.
  void AddGap(const session::RingReader::Lost& lost, uint64_t to_ns);
  void AddCorrections(const Corrections& corrections, uint64_t to_ns);

  // A name that was taken before gets a number. Returns the name.
  std::string AddSnapshot(const std::string& wanted, const std::string& reason,
                          const Exactness& exactness, const session::RingLosses& losses);
  void AddFacts(const gmt::Facts& facts) { Keep(writer_->Add(facts)); }
  // What somebody beside the target says happened now.
  void AddMark(uint64_t time_ns, const std::string& name, std::optional<uint64_t> index);
  void AddSymbols(const gmt::Symbols& symbols);
  void AddLosses(const session::RingLosses& losses);

  // Goes on in the next part of the recording, which begins with what is known of all before it: sums
  // and live set. Returns what the part before was written to; null where that failed.
  std::unique_ptr<format::Sink> BeginPart(std::unique_ptr<format::Sink> sink,
                                          const gmt::Header& header, const gmt::Facts& facts,
                                          const Exactness& exactness,
                                          const session::RingLosses& losses);
  void AddAggregates();
  uint64_t bytes_of_part() const { return writer_->bytes_written(); }
  bool has_events_of_part() const { return writer_->events_written() > events_before_part_; }

  void Flush();
  absl::Status Finish();

  // From now on leaks are looked for in what is recorded. Definitions reach `leaks` on their own way
  // (WriterOptions::on_definitions).
  void WatchLeaks(std::shared_ptr<LiveLeaks> leaks) { leaks_ = std::move(leaks); }
  LiveLeaks* leaks() { return leaks_.get(); }  // null: nobody looks

  LiveModel& live() { return live_; }
  const Tally& tally() const { return tally_; }
  StackTranslator& stacks() { return stacks_; }
  const EventTranslator& translator() const { return translator_; }
  format::DefinitionsBuilder* definitions() { return &writer_->definitions(); }
  const absl::Status& status() const { return status_; }

  uint64_t newest_ns() const { return newest_ns_; }  // of the events so far, CLOCK_MONOTONIC
  // The program itself asked how much memory of its devices is free.
  bool saw_sample() const { return saw_sample_; }
  bool saw(session::Memory memory) const {
    return (seen_memory_ & 1u << static_cast<int>(memory)) != 0;
  }
  const std::bitset<256>& devices() const { return devices_; }
  // The last of each device and source.
  using Samples = std::map<std::pair<uint32_t, std::string>, gmt::Sample>;
  const Samples& samples() const { return samples_; }
  uint64_t snapshots() const { return snapshot_names_.size(); }
  uint64_t bytes_written() const { return writer_->bytes_written(); }

 private:
  struct Totals {  // bytes, as a framework's allocator says
    uint64_t allocated, reserved;
  };

  gmt::Snapshot MakeSnapshot(const Exactness& exactness, const session::RingLosses& losses);
  std::string NewSnapshotName(const std::string& wanted);
  void AddThreadName(const session::Record& record);
  void Note(const session::Record& record);
  void AddRoles(const Place& place, const session::LiveValue& live, int64_t t_ns);
  void Write(const format::Event& event);
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
  absl::Status status_;
  uint64_t newest_ns_;
  uint32_t seen_memory_ = 0;
  bool saw_sample_ = false;
  uint32_t last_thread_ = 0;
  absl::flat_hash_set<uint32_t> threads_;
  std::bitset<256> devices_;
  Samples samples_;
  std::map<uint8_t, Totals> totals_;
  std::set<std::string> snapshot_names_;
  uint64_t events_before_part_ = 0;
};

// The session's counters and the reader's, as the file has them.
gmt::Losses MakeLosses(const session::Control& control, const session::RingLosses& ring);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_RECORDER_H_
