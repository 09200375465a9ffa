#include "interop/timeline/perfetto_trace.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "format/printable.h"
#include "interop/profile/stack_profile.h"
#include "interop/timeline/heap_dumps.h"
#include "interop/timeline/perfetto_file.h"

namespace gmt::interop {
namespace {

using perfetto::TrackEvent;

constexpr uint32_t kEventSequence = 1, kFirstHeapSequence = 2;

class PerfettoWriter {
 public:
  PerfettoWriter(const analysis::Trace& trace, PerfettoFile* file) : trace_(trace), file_(file) {}

  void Write(const Timeline& timeline) {
    WriteClocks();
    WriteProcess();
    for (const Timeline::Counter& counter : timeline.counters) {
      const uint64_t track = NewTrack();
      perfetto::TrackDescriptor& descriptor = Describe(track, counter.name);
      descriptor.mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
      Emit();
      for (const Timeline::Point& point : counter.points) {
        Event(track, TrackEvent::TYPE_COUNTER, point.t_ns)
            .set_counter_value(static_cast<int64_t>(point.bytes));
        Emit();
      }
    }
    for (const Timeline::Track& track : timeline.tracks) WriteTrack(track);
  }

 private:
  // Processes of one machine have different tracks, so that their files can be concatenated.
  uint64_t NewTrack() { return (trace_.pid << 32) + ++tracks_; }
  uint64_t FlowId(uint64_t number) const { return (trace_.pid << 32) + number; }

  void WriteClocks() {
    packet_.set_sequence_flags(kStateCleared);
    perfetto::ClockSnapshot& snapshot = *packet_.mutable_clock_snapshot();
    // The time since boot is not recorded. A reader that needs a relation to it gets the same time,
    // for example for heap dumps, whose times are of the coarse clock.
    for (const uint32_t id : {kRealtime, kMonotonic, kMonotonicCoarse, kBoottime}) {
      perfetto::ClockSnapshot::Clock& clock = *snapshot.add_clocks();
      clock.set_clock_id(id);
      clock.set_timestamp(PerfettoTime(trace_.start_unix_ns));
    }
    snapshot.set_primary_trace_clock(kRealtime);
    Emit();
  }

  void WriteProcess() {
    process_ = NewTrack();
    perfetto::TrackDescriptor& descriptor = *packet_.mutable_track_descriptor();
    descriptor.set_uuid(process_);
    perfetto::ProcessDescriptor& process = *descriptor.mutable_process();
    process.set_pid(static_cast<int32_t>(trace_.pid));
    for (const std::string& word : trace_.argv) process.add_cmdline(format::Printable(word));
    std::string name = trace_.argv.empty() ? "process" : trace_.argv.front();
    if (trace_.rank) absl::StrAppend(&name, " [rank ", *trace_.rank, "]");
    process.set_process_name(format::Printable(name));
    Emit();
  }

  perfetto::TrackDescriptor& Describe(uint64_t track, const std::string& name) {
    perfetto::TrackDescriptor& descriptor = *packet_.mutable_track_descriptor();
    descriptor.set_uuid(track);
    descriptor.set_parent_uuid(process_);
    descriptor.set_name(format::Printable(name));
    return descriptor;
  }

  void WriteTrack(const Timeline::Track& track) {
    const uint64_t uuid = NewTrack();
    perfetto::TrackDescriptor& descriptor = Describe(uuid, track.name);
    // A thread has one track; its further ones are tracks of the process.
    if (track.thread && threads_.insert(*track.thread).second) {
      descriptor.mutable_thread()->set_pid(static_cast<int32_t>(trace_.pid));
      descriptor.mutable_thread()->set_tid(static_cast<int32_t>(*track.thread));
    }
    Emit();
    std::vector<int64_t> open;  // ends of the slices that have begun
    const auto end_until = [&](int64_t t_ns) {
      for (; !open.empty() && open.back() <= t_ns; open.pop_back()) {
        Event(uuid, TrackEvent::TYPE_SLICE_END, open.back());
        Emit();
      }
    };
    for (const Timeline::Slice& slice : track.slices) {
      end_until(slice.begin_ns);
      TrackEvent& begin = Event(uuid, TrackEvent::TYPE_SLICE_BEGIN, slice.begin_ns);
      begin.set_name(format::Printable(slice.name));
      if (slice.flow && slice.ends_flow) begin.add_terminating_flow_ids(FlowId(*slice.flow));
      if (slice.flow && !slice.ends_flow) begin.add_flow_ids(FlowId(*slice.flow));
      Emit();
      open.push_back(slice.end_ns);
    }
    end_until(INT64_MAX);
    for (const Timeline::Instant& instant : track.instants) {
      Event(uuid, TrackEvent::TYPE_INSTANT, instant.t_ns).set_name(format::Printable(instant.name));
      Emit();
    }
  }

  TrackEvent& Event(uint64_t track, TrackEvent::Type type, int64_t t_ns) {
    packet_.set_timestamp(PerfettoTime(trace_.start_unix_ns + t_ns));
    packet_.set_timestamp_clock_id(kRealtime);
    TrackEvent& event = *packet_.mutable_track_event();
    event.set_track_uuid(track);
    event.set_type(type);
    return event;
  }

  void Emit() { file_->Emit(kEventSequence, &packet_); }

  const analysis::Trace& trace_;
  PerfettoFile* const file_;
  perfetto::TracePacket packet_;
  uint64_t process_ = 0, tracks_ = 0;
  std::set<uint32_t> threads_;  // that have a track
};

}  // namespace

void WritePerfettoTrace(const analysis::Examination& examination, const Timeline& timeline,
                        std::ostream& out) {
  PerfettoFile file(out);
  PerfettoWriter(examination.trace(), &file).Write(timeline);
  uint32_t sequence = kFirstHeapSequence;
  std::set<int64_t> times;
  for (const StackHistory& history : MakeStackHistories(examination))
    WriteHeapDumps(examination, history, sequence++, &times, &file);
}

}  // namespace gmt::interop
