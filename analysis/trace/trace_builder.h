// analysis/trace/trace_builder.h
//
// TraceBuilder: converts the events of a recording to a Trace (analysis/trace/trace.h has the rules
// T1..T7).
//
// Example
//   auto reader = format::RecordingReader::Open(path);
//   TraceBuilder builder((*reader)->definitions());
//   absl::Status status = (*reader)->Read(builder);
//   Trace trace = std::move(builder).Build();
//
// For a recording that is still being written, SoFar() returns a trace of the events so far, and
// BeginAgain() returns a builder that continues from the current state and drops older history
// (trace_window.cc).
//
// Cost: two hash look-ups per event, no heap allocation per event; memory is the columns plus what
// is held at once. Errors: none of its own; inconsistent events are counted in Trace::unknowns.
// Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_TRACE_TRACE_BUILDER_H_
#define GMT_ANALYSIS_TRACE_TRACE_BUILDER_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/trace/cross_check.h"
#include "analysis/trace/held_memory.h"
#include "analysis/trace/memory_event.h"
#include "analysis/trace/stream_log.h"
#include "analysis/trace/stream_waits.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "format/event.h"
#include "format/recording_reader.h"

namespace gmt::analysis {

class TraceBuilder : public format::RecordingVisitor, private HeldMemory::Listener {
 public:
  // REQUIRES: `definitions` outlives the builder and contains what each event refers to.
  explicit TraceBuilder(const format::Definitions& definitions)
      : definitions_(definitions),
        names_(definitions),
        streams_(definitions),
        cross_check_(definitions) {}

  absl::Status OnHeader(const Header& header) override;
  absl::Status OnEvents(const format::EventBatch& batch) override;
  absl::Status OnSnapshot(const Snapshot& snapshot) override;
  absl::Status OnFacts(const Facts& facts) override;
  absl::Status OnLosses(const Losses& losses) override;
  absl::Status OnAggregates(const Aggregates& aggregates) override;
  absl::Status OnCheckpoint(const Checkpoint& checkpoint) override;

  Trace Build() &&;

  // Returns what Build() would return for the events so far; the builder can continue afterwards.
  // The copy takes no events, so the references that it shares (reconciler_) are not changed
  // through it. Cost: a copy of all columns.
  Trace SoFar() const { return TraceBuilder(*this).Build(); }

  // Returns a builder that knows what is held now, with the time and the stack of each birth, and
  // nothing that has ended, like one that reads a recording whose older parts were deleted
  // (docs/long-runs.md). Pass it the events that follow. `moved`: for each row of this builder its
  // row there, kNoRow if it has none; rows that both add later keep a constant distance.
  TraceBuilder BeginAgain(std::vector<RowId>* moved) const;

  // Rows and steps recorded so far, without what Build() adds. Free of cost. Valid until the next
  // event.
  const Trace& so_far() const { return trace_; }

  RowId row_count() const { return trace_.rows.count(); }
  // What grows with the recording: rows, and the events beside them.
  uint64_t weight() const {
    return uint64_t{trace_.rows.count()} + trace_.side_events.size() + trace_.samples.size() +
           trace_.gaps.size() + trace_.captures.size();
  }
  Step step_count() const { return trace_.last_step(); }
  int64_t end_t_ns() const { return trace_.end_t_ns; }

 private:
  void OnEvent(const format::Event& event, const format::EventBatch& batch);
  void OnAlloc(const format::Event& event);
  void OnFree(const format::Event& event);
  void OnFreeDone(const format::Event& event);
  void AskWhenDone(RowId row, uint32_t heap, const format::Event& event);
  void OnAllocFailed(const format::Event& event);
  void OnRole(const format::Event& event);
  void OnMap(const format::Event& event);
  void OnUnmap(const format::Event& event);
  void OnContextReset(const format::Event& event);

  // Events that are not memory (trace_notes.cc).
  void OnNote(const format::Event& event, const format::EventBatch& batch);
  void OnSample(const format::Event& event, const Sample& sample);
  void NoteOutside(const format::Event& event);
  void OnSnapshotTaken(const std::string& name, int64_t t_ns);
  void OnMark(const format::Event& event);
  void OnAllocatorAction(const format::Event& event);
  void OnGraphAction(const format::Event& event);
  void OnRangeBegin(const format::Event& event);
  void OnRangeEnd(const format::Event& event);
  uint32_t EndedRange(const format::Event& event);
  void NoteInstant(const std::string& name, int64_t t_ns);
  void AddSideEvent(SideEvent::Kind kind, size_t index, int64_t t_ns) {
    trace_.side_events.push_back({kind, static_cast<uint32_t>(index), trace_.last_step(), t_ns});
  }

  // When blocks may be reused, the allocator's reported totals, and its driver calls
  // (trace_blocks.cc).
  void BeforeBlockEvent(const format::Event& event);
  void OnBlockBorn(RowId row, const format::Event& event);
  void OnBlockFreed(RowId row, uint32_t heap, const format::Event& event);
  void AwaitCompletion(RowId row, uint32_t heap, const format::Event& event);
  void OnBlockFreeDone(const format::Event& event);
  void ExpectCompletions();
  void Complete(RowId row, int64_t t_ns, uint32_t stack = 0);
  StreamWaits::Now Now(int64_t t_ns) const;
  void Count(RowId row);
  void Discount(RowId row);
  void NoteDriverCall(const format::Event& event, RowId row);
  void NoteDuration(const format::Event& done);

  uint32_t HeapOf(const format::Event& event) { return names_.HeapOf(event, &trace_.heaps); }

  RowId AddRow(const format::Event& event, uint32_t heap, Step birth, uint16_t flags);
  void AddOptionalColumns(const format::Event& event, RowId row);
  void AddDeath(RowId row, int64_t t_ns);

  // What held_ reports.
  HeldId OnBorn(const format::Event& event, const MemoryPlace& place) override;
  bool IsBirthOf(HeldId row, const format::Event& event) override;
  void OnEnded(HeldId row, HeldMemory::End end, const format::Event& event) override;
  bool OnRestored(HeldId row, const MemoryPlace& place) override;
  void OnSegment(HeldId row) override;
  void OnUnbacked(HeldId row) override { trace_.rows.AddFlags(row, kRowUnbacked); }
  HeldId OnFreeOfUnknown(const format::Event& event) override;
  uint32_t OnMapped(const format::Event& event, const HeldMemory::Mapping& mapping) override;
  void OnUnmapped(const HeldMemory::Mapping& mapping, HeldMemory::End end,
                  const format::Event& event) override;

  // `segments`: the indices of rows that have held blocks, ascending.
  void OnPartBegins(const std::vector<format::Event>& held, int64_t t_ns,
                    const std::vector<size_t>& segments);
  RowId AddFromSnapshot(const format::Event& event);

  // For BeginAgain().
  struct BeginAgainTag {};
  TraceBuilder(const TraceBuilder& before, BeginAgainTag)
      : definitions_(before.definitions_),
        names_(before.names_),
        streams_(before.streams_.BeginAgain()),
        cross_check_(before.cross_check_) {}
  void TakeFactsOf(const TraceBuilder& before);
  void TakeHeldOf(const TraceBuilder& before, std::vector<RowId>* moved);
  void TakeRolesOf(const TraceBuilder& before, const std::vector<RowId>& moved);
  void TakePlacesOf(const TraceBuilder& before, const std::vector<RowId>& moved);
  void TakeRangesOf(const TraceBuilder& before);
  RowId TakeRow(const TraceBuilder& before, RowId row);

  const format::Definitions& definitions_;
  Trace trace_;
  MemoryNames names_;
  HeldMemory held_;  // its ids are rows, the tags of its mappings indices of Trace::mappings
  int64_t last_snapshot_t_ns_ = INT64_MIN;
  bool has_events_ = false;

  StreamLog streams_;
  CrossCheck cross_check_;
  StreamWaits waits_;
  // Whether the recording reports completions (free_done of blocks); then none is inferred. The
  // blocks awaiting one:
  bool states_completions_ = false;
  absl::flat_hash_map<MemoryPlace, RowId> awaiting_;
  // The last block freed on a device, until the device's next block event.
  absl::flat_hash_map<int32_t, RowId> last_freed_;
  Reconciler reconciler_;
  std::vector<bool> counted_;  // by row: whether it is in the sums of reconciler_; never a region
  absl::flat_hash_map<int32_t, uint64_t> driver_free_;
  bool has_blocks_ = false;
  absl::flat_hash_map<uint64_t, uint32_t> open_ranges_;  // by the id that pairs them
  // By thread, those without an id.
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> nested_ranges_;
  // Snapshots known from their live sets whose event has not been seen.
  absl::flat_hash_map<std::string, uint32_t> unplaced_snapshots_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_TRACE_BUILDER_H_
