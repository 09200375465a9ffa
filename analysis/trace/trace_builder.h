// analysis/trace/trace_builder.h
//
// TraceBuilder: from the events of a recording to a Trace (analysis/trace/trace.h has the rules T1..T7).
//
// Example
//   auto reader = format::RecordingReader::Open(path);
//   TraceBuilder builder((*reader)->definitions());
//   absl::Status status = (*reader)->Read(builder);
//   Trace trace = std::move(builder).Build();
//
// Of a recording that is still being written it may be asked at any time what there is so far, and for
// a builder that begins where it is, so that what is long ago can be given up (trace_window.cc).
//
// Cost: two hash look-ups per event, no heap allocation per event; memory is the columns plus what
// is held at once. Errors: none of its own; events that make no sense are counted in
// Trace::unknowns. Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_TRACE_TRACE_BUILDER_H_
#define GMT_ANALYSIS_TRACE_TRACE_BUILDER_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "analysis/trace/cross_check.h"
#include "analysis/trace/stream_log.h"
#include "analysis/trace/stream_waits.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "format/event.h"
#include "format/recording_reader.h"

namespace gmt::analysis {

class TraceBuilder : public format::RecordingVisitor {
 public:
  // `definitions` must live as long as the builder and grow ahead of the events.
  explicit TraceBuilder(const format::Definitions& definitions)
      : definitions_(definitions), streams_(definitions), cross_check_(definitions) {}

  absl::Status OnHeader(const Header& header) override;
  absl::Status OnEvents(const format::EventBatch& batch) override;
  absl::Status OnSnapshot(const Snapshot& snapshot) override;
  absl::Status OnFacts(const Facts& facts) override;
  absl::Status OnLosses(const Losses& losses) override;
  absl::Status OnAggregates(const Aggregates& aggregates) override;

  Trace Build() &&;

  // As Build() of the events so far; goes on after that. The copy that is built takes no event, so that
  // what it has by reference (reconciler_) is not changed by it. Cost: a copy of all columns.
  Trace SoFar() const { return TraceBuilder(*this).Build(); }

  // A builder that knows what is held now, with the time and the stack of each birth, and nothing of
  // what has ended: as one that reads a recording whose older parts are gone (docs/long-runs.md). It
  // is to be given the events that follow. `moved`: by row of this one its row there, kNoRow where it
  // has none; rows that both get from then on have the same distance.
  TraceBuilder BeginAgain(std::vector<RowId>* moved) const;

  // Rows and steps as far as they are told, without what Build() adds; of no cost. Good until the next
  // event.
  const Trace& so_far() const { return trace_; }

  RowId row_count() const { return trace_.rows.count(); }
  // What grows with the recording: rows, and what is told beside them.
  uint64_t weight() const {
    return uint64_t{trace_.rows.count()} + trace_.asides.size() + trace_.samples.size() +
           trace_.gaps.size() + trace_.captures.size();
  }
  Step step_count() const { return trace_.last_step(); }
  int64_t end_t_ns() const { return trace_.end_t_ns; }

 private:
  // Spaces of Place. Blocks of heap h are in space kFirstBlockSpace + h.
  enum Space : uint32_t { kDeviceSpace, kArraySpace, kPhysicalSpace, kHostSpace, kFirstBlockSpace };
  // A place that can hold one thing at a time. Handles and addresses, and the blocks of each heap,
  // are worlds of their own: a segment's first block has the segment's own address.
  struct Place {
    uint64_t value = 0;
    uint32_t space = 0;

    bool operator==(const Place&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Place& p) {
      return H::combine(std::move(h), p.value ^ uint64_t{p.space} << 56);
    }
  };
  struct Places {
    std::array<Place, 4> all;
    uint32_t count = 1;

    const Place& front() const { return all[0]; }
    const Place* begin() const { return all.data(); }
    const Place* end() const { return all.data() + count; }
  };
  // A reserved range of addresses. A framework that puts blocks in it uses all that is mapped there
  // as one segment.
  struct Reservation {
    uint64_t address = 0, size = 0;
    bool holds_blocks = false;
  };
  struct Physical {
    uint32_t mappings = 0;
    bool released = false;
  };

  static bool Failed(const format::Event& event);
  void OnEvent(const format::Event& event, const format::EventBatch& batch);
  void OnAlloc(const format::Event& event);
  void OnFree(const format::Event& event);
  void OnFreeDone(const format::Event& event);
  void AskWhenDone(RowId row, const format::Event& event);
  void OnAllocFailed(const format::Event& event);
  void OnReserve(const format::Event& event);
  void OnRole(const format::Event& event);
  void OnMap(const format::Event& event);
  void OnUnmap(const format::Event& event);
  void OnContextReset(const format::Event& event);

  // What is no memory (trace_notes.cc).
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
  void NoteAside(Aside::Kind kind, size_t index, int64_t t_ns) {
    trace_.asides.push_back({kind, static_cast<uint32_t>(index), trace_.last_step(), t_ns});
  }

  // When blocks may be used again, what their allocator says of itself, and what it asked of the
  // driver (trace_blocks.cc).
  void BeforeBlockEvent(const format::Event& event);
  void OnBlockBorn(RowId row, const format::Event& event);
  void OnBlockFreed(RowId row, const format::Event& event);
  void OnBlockFreeDone(const format::Event& event);
  void ExpectCompletions();
  void Complete(RowId row, int64_t t_ns, uint32_t stack = 0);
  StreamWaits::Now Now(int64_t t_ns) const;
  void Count(RowId row);
  void Discount(RowId row);
  void MarkSegment(RowId row);
  void NoteDriverCall(const format::Event& event, RowId row);
  void NoteDuration(const format::Event& done);

  uint32_t HeapOf(const format::Event& event);
  uint32_t HeapNamed(uint32_t string_id);
  // Where a free may mean; the first is the likeliest.
  Places PlacesOf(const format::Event& event);
  Place PlaceOf(uint32_t heap, Memory memory, uint64_t value) const;

  RowId AddRow(const format::Event& event, Step birth, uint16_t flags);
  bool IsToldBefore(const format::Event& event);
  RowId AddToldBefore(const format::Event& event);
  RowId Bear(const format::Event& event);
  void Hold(const Place& place, RowId row);
  void NotePlace(const Place& place, RowId row);
  // Ends a row that is held no more: of physical memory, once nothing maps it.
  void Release(const Place& place, RowId row, int64_t t_ns);
  void ReleaseAll(std::vector<std::pair<RowId, Place>> held, int64_t t_ns);
  void Die(RowId row, int64_t t_ns);
  void EndMapping(uint32_t mapping, int64_t t_ns, uint32_t stack = 0);
  // The row of what was held from before; kNoRow where nobody can tell.
  RowId FreeOfUnknown(const format::Event& event);
  RowId AllocationAround(int32_t device, uint64_t address) const;
  void MarkIfUnbacked(RowId region);
  void MarkSegments(RowId block);
  void AddOptionalColumns(const format::Event& event, RowId row);
  bool MarkMappings(uint64_t start, uint64_t end);
  Reservation* ReservationOf(uint64_t address);
  void OnPartBegins(const std::vector<format::Event>& held, int64_t t_ns);
  RowId AddFromSnapshot(const format::Event& held);

  // Of BeginAgain().
  struct Again {};
  TraceBuilder(const TraceBuilder& before, Again)
      : definitions_(before.definitions_),
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
  CodedColumn<uint32_t> context_;  // by row
  absl::flat_hash_map<uint32_t, uint32_t> heap_by_string_;
  uint32_t before_attach_ = 0;  // string, once it is known
  // The last one asked for: most events are of one heap.
  uint32_t last_heap_string_ = UINT32_MAX, last_heap_ = 0;
  absl::flat_hash_map<Place, RowId> held_;
  absl::flat_hash_map<Place, RowId> freed_;  // since, for free_done
  absl::flat_hash_map<RowId, Physical> physical_;
  // By (device, address): what a block may lie in.
  absl::btree_map<std::pair<int32_t, uint64_t>, RowId> ranges_;
  absl::btree_map<uint64_t, uint32_t> mappings_;
  absl::btree_map<uint64_t, Reservation> reservations_;
  int64_t last_snapshot_t_ns_ = INT64_MIN;
  bool has_events_ = false;

  StreamLog streams_;
  CrossCheck cross_check_;
  StreamWaits waits_;
  // The recording states completions (free_done of blocks): none is derived. What then waits:
  bool states_completions_ = false;
  absl::flat_hash_map<Place, RowId> awaiting_;
  // The block freed last on a device, until the next event of a block there.
  absl::flat_hash_map<int32_t, RowId> last_freed_;
  Reconciler reconciler_;
  std::vector<bool> counted_;  // by row: in the sums of reconciler_
  absl::flat_hash_map<int32_t, uint64_t> driver_free_;
  bool has_blocks_ = false;
  absl::flat_hash_map<uint64_t, uint32_t> open_ranges_;                 // by the id that pairs them
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> nested_ranges_;  // by thread, those without
  // Snapshots known from their live sets, whose place among the events was not seen.
  absl::flat_hash_map<std::string, uint32_t> unplaced_snapshots_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_TRACE_BUILDER_H_
