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

constexpr uint32_t kNoContext = UINT32_MAX;

bool IsHost(Memory memory) { return memory == PINNED || memory == REGISTERED; }
bool IsArray(Memory memory) { return memory == ARRAY || memory == MIPMAPPED; }
// Memory that another process or API owns is counted by its owner.
bool IsForeign(Memory memory) {
  return memory == IPC || memory == EXTERNAL || memory == GRAPHICS || memory == MULTICAST;
}
// Physical memory has no address; some logs store its handle in the address field.
uint64_t ValueOf(const Event& event) {
  const bool physical = event.kind == CREATE || event.kind == RELEASE;
  return physical && event.address == 0 ? event.handle : event.address;
}

template <typename Settings>
std::vector<NamedText> NamedTexts(const Settings& settings) {
  std::vector<NamedText> texts;
  for (const Setting& setting : settings)
    texts.push_back({setting.name(), setting.value(), setting.json()});
  return texts;
}

}  // namespace

bool TraceBuilder::Failed(const Event& event) {
  return event.has(format::kHasResult) && event.result != 0;
}

absl::Status TraceBuilder::OnHeader(const Header& header) {
  trace_.start_unix_ns = static_cast<int64_t>(header.start_unix_ns());
  trace_.imported_from = header.imported_from();
  trace_.pid = header.pid();
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

// The live set at the beginning of a part is exact and equivalent to its events. For later parts,
// the parts before them have reported it already.
void TraceBuilder::OnPartBegins(const std::vector<Event>& held, int64_t t_ns) {
  if (has_events_) return;
  trace_.end_t_ns = std::max(trace_.end_t_ns, t_ns);
  Rows& rows = trace_.rows;
  for (const Event& event : held) {
    const RowId row = AddFromSnapshot(event);
    if (row == kNoRow || !event.has(format::kHasTime)) continue;
    --trace_.unknowns.rows_from_before;
    rows.flags[row] |= kRowBornBefore;
    rows.born_column.GrowTo(size_t{row} + 1);
    rows.born_column[row] = event.t_ns;
  }
}

// A snapshot contains allocations whose events were lost or never seen. It does not end rows,
// because its position among the events is only known to within the collector's interval.
absl::Status TraceBuilder::OnSnapshot(const Snapshot& snapshot) {
  const auto held = format::DecodeLive(snapshot.live());
  if (!held.ok()) return held.status();
  if (snapshot.reason() == "part") {
    OnPartBegins(*held, snapshot.t_ns());
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
  streams_.OnEvent(event);
  cross_check_.OnEvent(event);
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
      return OnReserve(event);
    case UNRESERVE:
      reservations_.erase(event.address);
      return;
    case MAP:
      if (!IsForeign(event.memory)) OnMap(event);
      return;
    case UNMAP:
      if (!IsForeign(event.memory)) OnUnmap(event);
      return;
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
  const Place place = PlacesOf(event).front();
  if (place.space >= kFirstBlockSpace) BeforeBlockEvent(event);
  const auto [held, is_new] = held_.try_emplace(place, kNoRow);
  if (!is_new) {
    const RowId old = held->second;
    Rows& rows = trace_.rows;
    const bool from_snapshot =
        (rows.flags[old] & (kRowFromBefore | kRowBornBefore)) == kRowFromBefore &&
        event.t_ns <= last_snapshot_t_ns_ && rows.size[old] == event.size;
    if (from_snapshot) {  // the snapshot ran ahead of this event
      rows.flags[old] &= static_cast<uint16_t>(~kRowFromBefore);
      --trace_.unknowns.rows_from_before;
      trace_.steps.push_back({old, false, event.t_ns});
      rows.birth[old] = trace_.last_step();
      trace_.rows_by_birth = false;
      Count(old);
      if (rows.heap[old] > kHostHeap) OnBlockBorn(old, event);
      return;
    }
    ++trace_.unknowns.frees_lost;
    rows.flags[old] |= kRowFreeLost;
    physical_.erase(old);
    AddDeath(old, event.t_ns);
  }
  if (place.space < kFirstBlockSpace) freed_.erase(place);
  held->second = IsReportedBefore(event) ? AddReportedBefore(event) : AddBirth(event);
  const RowId row = held->second;
  NotePlace(place, row);
  Count(row);
  if (trace_.rows.heap[row] > kHostHeap) return OnBlockBorn(row, event);
  NoteDriverCall(event, row);
}

// Memory held before an attach is reported as allocations by a fictitious API.
bool TraceBuilder::IsReportedBefore(const Event& event) {
  if (event.api == 0 || event.stack != 0) return false;
  if (event.api == before_attach_) return true;
  if (definitions_.string(event.api) != kBeforeAttachApi) return false;
  before_attach_ = event.api;
  return true;
}

RowId TraceBuilder::AddReportedBefore(const Event& event) {
  ++trace_.unknowns.rows_from_before;
  return AddRow(event, 0, kRowFromBefore | kRowReportedBefore);
}

RowId TraceBuilder::AddBirth(const Event& event) {
  trace_.steps.push_back({trace_.rows.count(), false, event.t_ns});
  return AddRow(event, trace_.last_step(), 0);
}

RowId TraceBuilder::AddRow(const Event& event, Step birth, uint16_t flags) {
  Rows& rows = trace_.rows;
  const RowId row = rows.count();
  const uint32_t heap = HeapOf(event);
  if (event.has(format::kHasStream)) flags |= kRowHasStream;
  if (event.has(format::kHasThread)) flags |= kRowHasThread;
  if (event.kind == CREATE || event.kind == RELEASE || IsArray(event.memory)) flags |= kRowHandle;
  rows.address.push_back(ValueOf(event));
  rows.size.push_back(event.size);
  rows.birth.push_back(birth);
  rows.death.push_back(kNever);
  rows.completed.push_back(kNever);
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
  context_.push_back(event.has(format::kHasContext) ? event.context : kNoContext);
  counted_.push_back(false);
  AddOptionalColumns(event, row);
  return row;
}

void TraceBuilder::AddOptionalColumns(const Event& event, RowId row) {
  Rows& rows = trace_.rows;
  const auto add = [&](auto& column, auto value) {
    column.GrowTo(size_t{row} + 1);
    column[row] = value;
  };
  if (event.has(format::kHasRequested)) {
    rows.flags[row] |= kRowHasRequested;
    add(rows.requested_column, event.requested);
  }
  if (event.has(format::kHasPool)) {
    rows.flags[row] |= kRowHasPool;
    add(rows.pool_column, event.pool);
    const bool is_segment =
        rows.heap[row] == kDriverHeap && (event.memory == DEVICE || event.memory == VMM);
    if (is_segment) rows.flags[row] |= kRowHoldsBlocks;
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

void TraceBuilder::Hold(const Place& place, RowId row) {
  held_[place] = row;
  NotePlace(place, row);
}

void TraceBuilder::NotePlace(const Place& place, RowId row) {
  if (place.space == kPhysicalSpace) physical_[row] = {};
  if (place.space == kDeviceSpace) ranges_[{trace_.rows.device[row], place.value}] = row;
}

void TraceBuilder::OnFree(const Event& event) {
  if (Failed(event) || ValueOf(event) == 0 || IsForeign(event.memory)) return;
  const Places places = PlacesOf(event);
  const bool is_block = places.front().space >= kFirstBlockSpace;
  if (is_block) BeforeBlockEvent(event);
  RowId row = kNoRow;
  for (const Place& place : places) {
    const auto held = held_.find(place);
    if (held == held_.end()) continue;
    row = held->second;
    held_.erase(held);
    Release(place, row, event.t_ns);
    break;
  }
  if (row == kNoRow) row = FreeOfUnknown(event);
  if (row != kNoRow && streams_.FreesInOrder(event)) AskWhenDone(row, event);
  if (is_block) return OnBlockFreed(row, event);
  NoteDriverCall(event, row);
}

// A block returns to the stream for which it was allocated, regardless of the freeing stream.
void TraceBuilder::AskWhenDone(RowId row, const Event& event) {
  Rows& rows = trace_.rows;
  const bool is_block = rows.heap[row] > kHostHeap;
  if (!is_block && !event.has(format::kHasStream)) return;
  if (is_block && (rows.flags[row] & kRowHasStream) == 0) return;
  if (!is_block) rows.flags[row] |= kRowFreedInOrder;
  streams_.OnFreed(event, is_block ? rows.stream[row] : event.stream, row);
}

void TraceBuilder::Release(const Place& place, RowId row, int64_t t_ns) {
  if (place.space < kFirstBlockSpace) freed_[place] = row;  // only the driver can refuse
  const auto physical = place.space == kPhysicalSpace ? physical_.find(row) : physical_.end();
  if (physical != physical_.end()) {
    physical->second.released = true;
    if (physical->second.mappings > 0) return;
    physical_.erase(physical);
  }
  AddDeath(row, t_ns);
}

void TraceBuilder::AddDeath(RowId row, int64_t t_ns) {
  trace_.steps.push_back({row, true, t_ns});
  trace_.rows.death[row] = trace_.rows.completed[row] = trace_.last_step();
  Discount(row);
  if (trace_.rows.heap[row] != kDriverHeap) return;
  const auto range = ranges_.find({trace_.rows.device[row], trace_.rows.address[row]});
  if (range != ranges_.end() && range->second == row) ranges_.erase(range);
}

RowId TraceBuilder::FreeOfUnknown(const Event& event) {
  // After a gap, the birth may be among the missing events, so it is unknown since when it was
  // held.
  if (trace_.unknowns.gaps > 0 || event.size == 0) {
    ++trace_.unknowns.frees_unmatched;
    return kNoRow;
  }
  const RowId row = AddRow(event, 0, kRowFromBefore | kRowUnreportedBefore);
  trace_.rows.stack[row] = 0;  // the stack of a free is not the allocation's
  ++trace_.unknowns.rows_from_before;
  const Place place = PlacesOf(event).front();
  if (place.space < kFirstBlockSpace) freed_[place] = row;
  AddDeath(row, event.t_ns);
  return row;
}

void TraceBuilder::OnFreeDone(const Event& event) {
  const Places places = PlacesOf(event);
  if (places.front().space >= kFirstBlockSpace) return OnBlockFreeDone(event);
  NoteDuration(event);
  for (const Place& place : places) {
    const auto freed = freed_.find(place);
    if (freed == freed_.end()) continue;
    const RowId row = freed->second;
    freed_.erase(freed);
    if (!Failed(event) || held_.contains(place)) return;
    Step& death = trace_.rows.death[row];
    if (death != kNever) {
      trace_.steps.Undo(death - 1);
      death = trace_.rows.completed[row] = kNever;
      Hold(place, row);
      Count(row);
    } else if (const auto physical = physical_.find(row); physical != physical_.end()) {
      physical->second.released = false;  // still mapped, so the release had not ended anything
      held_[place] = row;
    }
    return;
  }
}

void TraceBuilder::OnRole(const Event& event) {
  const auto held = held_.find(PlaceOf(HeapOf(event), event.memory, event.address));
  if (held == held_.end()) return;
  const RowId row = held->second;
  Rows& rows = trace_.rows;
  rows.roles_column.GrowTo(size_t{row} + 1);
  rows.roles_column[row] = static_cast<uint8_t>(rows.roles_column[row] | event.roles);
  trace_.role_changes.push_back(
      {row, trace_.last_step(), event.roles, event.forward_stack, event.name});
}

void TraceBuilder::OnAllocFailed(const Event& event) {
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
  const bool by_context = event.has(format::kHasContext), by_device = event.has(format::kHasDevice);
  if (!by_context && !by_device) {
    ++trace_.unknowns.resets_unscoped;
    return;
  }
  const auto in_scope = [&](RowId row) {
    if (by_context && context_[row] != kNoContext) return context_[row] == event.context;
    return by_device && trace_.rows.device[row] == static_cast<int32_t>(event.device);
  };
  std::vector<uint32_t> unmapped;
  for (const auto& [address, index] : mappings_) {
    const Mapping& mapping = trace_.mappings[index];
    const bool gone = mapping.physical == kNoRow
                          ? by_device && mapping.device == static_cast<int32_t>(event.device)
                          : in_scope(mapping.physical);
    if (gone) unmapped.push_back(index);
  }
  std::vector<std::pair<RowId, Place>> blocks, others;
  for (const auto& [place, row] : held_) {
    if (!in_scope(row)) continue;
    (place.space >= kFirstBlockSpace ? blocks : others).emplace_back(row, place);
  }
  // From the inside out: blocks before their segments.
  ReleaseAll(std::move(blocks), event.t_ns);
  for (uint32_t index : unmapped) EndMapping(index, event.t_ns);
  ReleaseAll(std::move(others), event.t_ns);
}

void TraceBuilder::ReleaseAll(std::vector<std::pair<RowId, Place>> held, int64_t t_ns) {
  // Hash tables have no defined order; steps must come in the same order in every run.
  std::sort(held.begin(), held.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [row, place] : held) {
    held_.erase(place);
    Release(place, row, t_ns);
  }
}

RowId TraceBuilder::AddFromSnapshot(const Event& held) {
  if (held.kind == MAP) {
    if (!IsForeign(held.memory) && !mappings_.contains(held.address)) OnMap(held);
    return kNoRow;
  }
  if ((held.kind != ALLOC && held.kind != CREATE && held.kind != REGISTER) ||
      IsForeign(held.memory)) {
    return kNoRow;
  }
  const Place place = PlacesOf(held).front();
  if (held_.contains(place)) return kNoRow;
  const RowId row = AddRow(
      held, 0, IsReportedBefore(held) ? kRowFromBefore | kRowReportedBefore : kRowFromBefore);
  Hold(place, row);
  ++trace_.unknowns.rows_from_before;
  // Memory that the live set contains ahead of the events is not in an allocator's totals yet.
  if (!held.has(format::kHasTime) || held.t_ns <= trace_.end_t_ns) Count(row);
  if (trace_.rows.IsRegion(row)) {
    MarkIfUnbacked(row);
  } else if (trace_.rows.heap[row] > kHostHeap) {
    MarkSegments(row);
  }
  return row;
}

uint32_t TraceBuilder::HeapOf(const Event& event) {
  if (IsHost(event.memory) || event.kind == REGISTER || event.kind == UNREGISTER) return kHostHeap;
  return HeapNamed(event.heap);
}

uint32_t TraceBuilder::HeapNamed(uint32_t string_id) {
  if (string_id == last_heap_string_) return last_heap_;
  const auto [it, is_new] = heap_by_string_.try_emplace(string_id, kDriverHeap);
  const std::string_view name = definitions_.string(string_id);
  if (is_new && !name.empty()) {
    const auto known = std::find(trace_.heaps.begin(), trace_.heaps.end(), name);
    it->second = static_cast<uint32_t>(known - trace_.heaps.begin());
    if (known == trace_.heaps.end()) trace_.heaps.emplace_back(name);
  }
  last_heap_string_ = string_id;
  return last_heap_ = it->second;
}

TraceBuilder::Place TraceBuilder::PlaceOf(uint32_t heap, Memory memory, uint64_t value) const {
  if (heap > kHostHeap) return {value, kFirstBlockSpace + heap};
  if (heap == kHostHeap) return {value, kHostSpace};
  return {value, static_cast<uint32_t>(IsArray(memory) ? kArraySpace : kDeviceSpace)};
}

TraceBuilder::Places TraceBuilder::PlacesOf(const Event& event) {
  const uint64_t value = ValueOf(event);
  if (event.kind == CREATE || event.kind == RELEASE) return {{{{value, kPhysicalSpace}}}};
  const uint32_t heap = HeapOf(event);
  if (heap > kHostHeap || event.memory != MEMORY_UNSPECIFIED || event.kind == ALLOC) {
    const bool may_be_physical = event.kind == FREE_DONE && event.memory == VMM;
    return {{{PlaceOf(heap, event.memory, value), {value, kPhysicalSpace}}},
            may_be_physical ? 2u : 1u};
  }
  // An event log may omit the kind of memory that is freed.
  return {
      {{{value, kDeviceSpace}, {value, kHostSpace}, {value, kArraySpace}, {value, kPhysicalSpace}}},
      4};
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
