#include "analysis/trace/trace_builder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "format/live_columns.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {
namespace {

using format::Event;

template <typename Settings>
std::vector<NamedText> NamedTexts(const Settings& settings) {
  std::vector<NamedText> texts;
  for (const Setting& setting : settings)
    texts.push_back({setting.name(), setting.value(), setting.json()});
  return texts;
}

}  // namespace

absl::Status TraceBuilder::OnHeader(const Header& header) {
  trace_.start_unix_ns = static_cast<int64_t>(header.start_unix_ns());
  trace_.imported_from = header.imported_from();
  trace_.pid = header.pid();
  trace_.hostname = header.hostname();
  trace_.run_id = header.run_id();
  return absl::OkStatus();
}

absl::Status TraceBuilder::OnEvents(const format::EventBatch& batch) {
  has_events_ = true;
  for (const Event& event : batch.events) OnEvent(event, batch);
  return absl::OkStatus();
}

absl::Status TraceBuilder::OnFacts(const Facts& facts) {
  cross_check_.OnFacts(facts);
  if (facts.devices_size() > 0) {
    trace_.devices.clear();
    for (const Device& device : facts.devices())
      trace_.devices.push_back({device.index(), device.name(), device.total_bytes()});
  }
  if (facts.has_end_t_ns()) trace_.end_t_ns = std::max(trace_.end_t_ns, facts.end_t_ns());
  if (facts.has_losses()) trace_.losses = std::make_shared<Losses>(facts.losses());
  if (facts.settings_size() > 0) trace_.settings = NamedTexts(facts.settings());
  if (facts.libraries_size() > 0) trace_.libraries = NamedTexts(facts.libraries());
  if (facts.sources_size() > 0) trace_.sources = NamedTexts(facts.sources());
  if (facts.argv_size() > 0) trace_.argv.assign(facts.argv().begin(), facts.argv().end());
  if (facts.has_rank()) trace_.rank = facts.rank();
  if (facts.has_local_rank()) trace_.local_rank = facts.local_rank();
  if (facts.has_world_size()) trace_.world_size = facts.world_size();
  return absl::OkStatus();
}

absl::Status TraceBuilder::OnLosses(const Losses& losses) {
  trace_.losses = std::make_shared<Losses>(losses);
  return absl::OkStatus();
}

// Sums of later parts repeat the events before them, except that the leak state advances.
absl::Status TraceBuilder::OnAggregates(const Aggregates& aggregates) {
  if (aggregates.has_leaks()) trace_.leak_state = std::make_shared<LeakState>(aggregates.leaks());
  if (!has_events_ && !trace_.before && aggregates.events() > 0)
    trace_.before = std::make_shared<Aggregates>(aggregates);
  return absl::OkStatus();
}

absl::Status TraceBuilder::OnCheckpoint(const Checkpoint& checkpoint) {
  const auto held = format::DecodeLive(checkpoint.held().live());
  if (!held.ok()) return held.status();
  std::vector<size_t> segments;
  for (const uint32_t difference : checkpoint.segments())
    segments.push_back(difference + (segments.empty() ? 0 : segments.back()));
  OnPartBegins(*held, checkpoint.held().t_ns(), segments);
  return absl::OkStatus();
}

// The live set at the beginning of a part is exact and equivalent to its events. For later parts,
// the parts before them have reported it already.
void TraceBuilder::OnPartBegins(const std::vector<Event>& held, int64_t t_ns,
                                const std::vector<size_t>& segments) {
  if (has_events_) return;
  trace_.end_t_ns = std::max(trace_.end_t_ns, t_ns);
  Rows& rows = trace_.rows;
  auto segment = segments.begin();
  for (size_t i = 0; i < held.size(); ++i) {
    const Event& event = held[i];
    const bool is_segment = segment != segments.end() && *segment == i;
    if (is_segment) ++segment;
    const RowId row = AddFromSnapshot(event);
    if (row == kNoRow) continue;
    if (is_segment) OnSegment(row);
    if (!event.has(format::kHasTime)) continue;
    --trace_.unknowns.rows_from_before;
    rows.AddFlags(row, kRowBornBefore);
    GrowTo(rows.born_column, size_t{row} + 1);
    rows.born_column[row] = event.t_ns;
  }
}

// A snapshot contains allocations whose events were lost or never seen. It does not end rows,
// because its position among the events is only known to within the collector's interval.
absl::Status TraceBuilder::OnSnapshot(const Snapshot& snapshot) {
  const auto held = format::DecodeLive(snapshot.live());
  if (!held.ok()) return held.status();
  if (snapshot.reason() == "part") {
    OnPartBegins(*held, snapshot.t_ns(), {});
    return absl::OkStatus();
  }
  for (const Event& event : *held) AddFromSnapshot(event);
  last_snapshot_t_ns_ = std::max(last_snapshot_t_ns_, snapshot.t_ns());
  trace_.end_t_ns = std::max(trace_.end_t_ns, snapshot.t_ns());
  NoteInstant(snapshot.name(), snapshot.t_ns());
  return absl::OkStatus();
}

void TraceBuilder::OnEvent(const Event& event, const format::EventBatch& batch) {
  trace_.end_t_ns = std::max(trace_.end_t_ns, event.t_ns);
  if (!trace_.first_t_ns) trace_.first_t_ns = event.t_ns;
  if (!IsFrameworks(event.memory)) {
    streams_.OnEvent(event);
    cross_check_.OnEvent(event);
  }
  switch (event.kind) {
    case ALLOC:
    case CREATE:
    case REGISTER:
      return OnAlloc(event);
    case FREE:
    case RELEASE:
    case UNREGISTER:
      return OnFree(event);
    case FREE_DONE:
      return OnFreeDone(event);
    case ALLOC_FAILED:
      return OnAllocFailed(event);
    case RESERVE:
      return held_.Reserve(event);
    case UNRESERVE:
      return held_.Unreserve(event);
    case MAP:
      return OnMap(event);
    case UNMAP:
      return OnUnmap(event);
    case ROLE:
      return OnRole(event);
    case CONTEXT_RESET:
      NoteOutside(event);
      return OnContextReset(event);
    default:
      return OnNote(event, batch);
  }
}

void TraceBuilder::OnAlloc(const Event& event) {
  if (Failed(event)) return OnAllocFailed(event);
  if (IsForeign(event.memory)) return;
  const uint32_t heap = HeapOf(event);
  if (heap > kHostHeap) BeforeBlockEvent(event);
  const RowId row = held_.Alloc(event, heap, *this);
  Count(row);
  if (heap > kHostHeap) return OnBlockBorn(row, event);
  NoteDriverCall(event, row);
}

HeldId TraceBuilder::OnBorn(const Event& event, const MemoryPlace& /*place*/) {
  if (names_.IsBeforeAttach(event)) {
    ++trace_.unknowns.rows_from_before;
    return AddRow(event, HeapOf(event), 0, kRowFromBefore | kRowReportedBefore);
  }
  trace_.steps.push_back({trace_.rows.count(), false, event.t_ns});
  return AddRow(event, HeapOf(event), trace_.last_step(), 0);
}

// A snapshot may run ahead of the events, and contain what they report later.
bool TraceBuilder::IsBirthOf(HeldId row, const Event& event) {
  Rows& rows = trace_.rows;
  const bool from_snapshot =
      (rows.flags[row] & (kRowFromBefore | kRowBornBefore)) == kRowFromBefore &&
      event.t_ns <= last_snapshot_t_ns_ && rows.size[row] == event.size;
  if (!from_snapshot) return false;
  rows.RemoveFlags(row, kRowFromBefore);
  --trace_.unknowns.rows_from_before;
  trace_.steps.push_back({row, false, event.t_ns});
  rows.birth.Set(row, trace_.last_step());
  trace_.rows_by_birth = false;
  return true;
}

RowId TraceBuilder::AddRow(const Event& event, uint32_t heap, Step birth, uint16_t flags) {
  Rows& rows = trace_.rows;
  const RowId row = rows.count();
  if (event.has(format::kHasStream)) flags |= kRowHasStream;
  if (event.has(format::kHasThread)) flags |= kRowHasThread;
  if (event.has(format::kHasRequested)) flags |= kRowHasRequested;
  if (event.has(format::kHasPool)) flags |= kRowHasPool;
  if (event.kind == CREATE || event.kind == RELEASE || IsArray(event.memory)) flags |= kRowHandle;
  rows.address.push_back(ValueOf(event));
  rows.size.push_back(event.size);
  rows.birth.push_back(birth);
  rows.death.push_back(kNever);
  rows.wait.push_back(0);
  rows.stack.push_back(event.stack);
  rows.forward_stack.push_back(event.forward_stack);
  rows.stream.push_back(event.stream);
  rows.thread.push_back(event.thread);
  const bool is_host =
      heap == kHostHeap || (event.memory == REGION && !event.has(format::kHasDevice));
  rows.device.push_back(is_host ? kHostDevice : static_cast<int32_t>(event.device));
  rows.heap.push_back(static_cast<uint16_t>(heap));
  rows.memory.push_back(static_cast<uint8_t>(event.memory));
  rows.flags.push_back(flags);
  counted_.push_back(false);
  const bool has_more = (event.present & (format::kHasRequested | format::kHasPool)) != 0 ||
                        (event.name | event.scope | event.dtype | event.shape | event.roles) != 0;
  if (has_more) AddOptionalColumns(event, row);
  return row;
}

void TraceBuilder::AddOptionalColumns(const Event& event, RowId row) {
  Rows& rows = trace_.rows;
  const auto add = [row](auto& column, auto value) {
    GrowTo(column, row);
    column.push_back(value);
  };
  if (event.has(format::kHasRequested)) add(rows.requested_column, event.requested);
  if (event.has(format::kHasPool)) {
    add(rows.pool_column, event.pool);
    const bool is_segment =
        rows.heap[row] == kDriverHeap && (event.memory == DEVICE || event.memory == VMM);
    if (is_segment) rows.AddFlags(row, kRowHoldsBlocks);
  }
  if (event.name != 0) add(rows.name_column, event.name);
  if (event.scope != 0) add(rows.scope_column, event.scope);
  if (event.dtype != 0) add(rows.dtype_column, event.dtype);
  if (event.shape != 0) add(rows.shape_column, event.shape);
  if (event.roles != 0) {
    add(rows.roles_column, static_cast<uint8_t>(event.roles));
    trace_.role_changes.push_back({row, rows.birth[row], event.roles, 0, 0});
  }
}

void TraceBuilder::OnFree(const Event& event) {
  if (Failed(event) || ValueOf(event) == 0 || IsForeign(event.memory)) return;
  const uint32_t heap = HeapOf(event);
  if (heap > kHostHeap) BeforeBlockEvent(event);
  const RowId row = held_.Free(event, heap, *this);
  if (row != kNoRow && streams_.FreesInOrder(event)) AskWhenDone(row, heap, event);
  if (heap > kHostHeap) return OnBlockFreed(row, heap, event);
  NoteDriverCall(event, row);
}

// A block returns to the stream for which it was allocated, regardless of the freeing stream.
void TraceBuilder::AskWhenDone(RowId row, uint32_t heap, const Event& event) {
  Rows& rows = trace_.rows;
  const bool is_block = heap > kHostHeap;
  if (!is_block && !event.has(format::kHasStream)) return;
  if (is_block && (rows.flags[row] & kRowHasStream) == 0) return;
  if (!is_block) rows.AddFlags(row, kRowFreedInOrder);
  streams_.OnFreed(event, is_block ? rows.stream[row] : event.stream, row);
}

void TraceBuilder::OnEnded(HeldId row, HeldMemory::End end, const Event& event) {
  if (end == HeldMemory::End::kFreeLost) {
    ++trace_.unknowns.frees_lost;
    trace_.rows.AddFlags(row, kRowFreeLost);
  }
  AddDeath(row, event.t_ns);
}

void TraceBuilder::AddDeath(RowId row, int64_t t_ns) {
  trace_.steps.push_back({row, true, t_ns});
  trace_.rows.death[row] = trace_.last_step();
  Discount(row);
}

HeldId TraceBuilder::OnFreeOfUnknown(const Event& event) {
  // After a gap, the birth may be among the missing events, so it is unknown since when it was
  // held.
  if (trace_.unknowns.gaps > 0 || event.size == 0) {
    ++trace_.unknowns.frees_unmatched;
    return kNoRow;
  }
  const RowId row = AddRow(event, HeapOf(event), 0, kRowFromBefore | kRowUnreportedBefore);
  trace_.rows.stack.Set(row, 0);  // the stack of a free is not the allocation's
  ++trace_.unknowns.rows_from_before;
  AddDeath(row, event.t_ns);
  return row;
}

void TraceBuilder::OnFreeDone(const Event& event) {
  const uint32_t heap = HeapOf(event);
  if (heap > kHostHeap) return OnBlockFreeDone(event);
  NoteDuration(event);
  held_.FreeDone(event, heap, *this);
}

bool TraceBuilder::OnRestored(HeldId row, const MemoryPlace& /*place*/) {
  Step& death = trace_.rows.death[row];
  trace_.steps.Undo(death - 1);
  death = kNever;
  trace_.rows.wait.Set(row, 0);
  Count(row);
  return true;
}

void TraceBuilder::OnRole(const Event& event) {
  const RowId row = held_.Find(PlaceOf(HeapOf(event), event.memory, event.address));
  if (row == kNoRow) return;
  Rows& rows = trace_.rows;
  GrowTo(rows.roles_column, size_t{row} + 1);
  rows.roles_column[row] = static_cast<uint8_t>(rows.roles_column[row] | event.roles);
  trace_.role_changes.push_back(
      {row, trace_.last_step(), event.roles, event.forward_stack, event.name});
}

void TraceBuilder::OnAllocFailed(const Event& event) {
  if (!LackedMemory(event)) return;
  const uint32_t heap = HeapOf(event);
  if (heap > kHostHeap) BeforeBlockEvent(event);
  FailedAllocation failed;
  failed.step = trace_.last_step();
  failed.t_ns = event.t_ns;
  failed.size = event.size;
  failed.stream = event.stream;
  failed.stack = event.stack;
  failed.device = heap == kHostHeap ? kHostDevice : static_cast<int32_t>(event.device);
  failed.heap = heap;
  failed.result = event.result;
  failed.forward_stack = event.forward_stack;
  failed.thread = event.thread;
  failed.dtype = event.dtype;
  failed.shape = event.shape;
  if (event.has(format::kHasTotalAllocated)) failed.total_allocated = event.total_allocated;
  if (event.has(format::kHasTotalReserved)) failed.total_reserved = event.total_reserved;
  if (const auto free = driver_free_.find(failed.device); free != driver_free_.end()) {
    failed.driver_free = free->second;
  }
  AddSideEvent(SideEvent::kFailed, trace_.failed.size(), event.t_ns);
  trace_.failed.push_back(failed);
  if (heap > kHostHeap) {
    waits_.OnOther(event.thread);
  } else if (heap == kDriverHeap) {
    NoteDriverCall(event, kNoRow);
  }
}

void TraceBuilder::OnContextReset(const Event& event) {
  if (!event.has(format::kHasContext) && !event.has(format::kHasDevice))
    ++trace_.unknowns.resets_unscoped;
  held_.Reset(event, *this);
}

RowId TraceBuilder::AddFromSnapshot(const Event& event) {
  if (event.kind == MAP) {
    if (!held_.IsMapped(event.address)) OnMap(event);
    return kNoRow;
  }
  if ((event.kind != ALLOC && event.kind != CREATE && event.kind != REGISTER) ||
      IsForeign(event.memory)) {
    return kNoRow;
  }
  // Memory of an imported live set may have no address. Each row is then memory of its own.
  const bool has_place = event.has(format::kHasAddress) || ValueOf(event) != 0;
  const uint32_t heap = HeapOf(event);
  const MemoryPlace place = LikeliestPlaceOf(event, heap);
  if (has_place && held_.Contains(place)) return kNoRow;
  uint16_t flags = kRowFromBefore;
  if (names_.IsBeforeAttach(event)) flags |= kRowReportedBefore;
  if (!has_place) flags |= kRowHandle;
  const RowId row = AddRow(event, heap, 0, flags);
  if (has_place) {
    held_.Hold(event, place, row, *this);
  } else {
    OnUnbacked(row);
  }
  ++trace_.unknowns.rows_from_before;
  // Memory that the live set contains ahead of the events is not in an allocator's totals yet.
  if (!event.has(format::kHasTime) || event.t_ns <= trace_.end_t_ns) Count(row);
  return row;
}

// ---- Addresses and their backing memory

void TraceBuilder::OnMap(const Event& event) {
  if (Failed(event) || IsForeign(event.memory)) return;
  NoteDriverCall(event, held_.Map(event, *this));
}

void TraceBuilder::OnUnmap(const Event& event) {
  if (Failed(event) || IsForeign(event.memory)) return;
  NoteDriverCall(event, held_.Unmap(event, *this));
}

uint32_t TraceBuilder::OnMapped(const Event& event, const HeldMemory::Mapping& held) {
  Mapping mapping;
  mapping.address = event.address;
  mapping.size = event.size;
  mapping.physical = held.physical;
  mapping.device = event.has(format::kHasDevice) ? static_cast<int32_t>(event.device) : held.device;
  mapping.birth = trace_.last_step();
  mapping.birth_t_ns = event.t_ns;
  mapping.stack = event.stack;
  mapping.stream = event.stream;
  mapping.has_stream = event.has(format::kHasStream);
  AddSideEvent(SideEvent::kMap, trace_.mappings.size(), event.t_ns);
  trace_.mappings.push_back(mapping);
  return static_cast<uint32_t>(trace_.mappings.size() - 1);
}

void TraceBuilder::OnUnmapped(const HeldMemory::Mapping& held, HeldMemory::End end,
                              const Event& event) {
  if (end == HeldMemory::End::kFreeLost) ++trace_.unknowns.frees_lost;
  Mapping& mapping = trace_.mappings[held.tag];
  mapping.death = trace_.last_step();
  mapping.death_t_ns = event.t_ns;
  if (end == HeldMemory::End::kFreed) mapping.unmap_stack = event.stack;
  AddSideEvent(SideEvent::kUnmap, held.tag, event.t_ns);
}

void TraceBuilder::OnSegment(HeldId row) {
  if ((trace_.rows.flags[row] & kRowHoldsBlocks) != 0) return;
  trace_.rows.AddFlags(row, kRowHoldsBlocks);
  if (counted_[row]) reconciler_.AddSegment(trace_.rows.device[row], trace_.rows.size[row]);
}

Trace TraceBuilder::Build() && {
  waits_.Apply(trace_);
  streams_.Apply(trace_);
  trace_.cross_check = std::move(cross_check_).Result();
  trace_.reconciliations = reconciler_.Result(trace_.heaps);
  if (!has_blocks_) trace_.driver_calls.clear();
  return std::move(trace_);
}

}  // namespace gmt::analysis
