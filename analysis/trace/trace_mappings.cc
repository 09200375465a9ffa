// TraceBuilder (analysis/trace/trace_builder.h): addresses and their backing memory - reservations,
// mappings of physical memory, and which driver memory is a framework's segment.

#include <algorithm>
#include <iterator>
#include <vector>

#include "analysis/trace/trace_builder.h"

namespace gmt::analysis {

void TraceBuilder::OnReserve(const format::Event& event) {
  if (!Failed(event)) reservations_[event.address] = {event.address, event.size, false};
}

TraceBuilder::Reservation* TraceBuilder::ReservationOf(uint64_t address) {
  const auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return nullptr;
  Reservation& reservation = std::prev(after)->second;
  return address - reservation.address < reservation.size ? &reservation : nullptr;
}

void TraceBuilder::OnMap(const format::Event& event) {
  if (Failed(event)) return;
  if (const auto old = mappings_.find(event.address); old != mappings_.end()) {
    ++trace_.unknowns.frees_lost;
    EndMapping(old->second, event.t_ns);
  }
  Mapping mapping;
  mapping.address = event.address;
  mapping.size = event.size;
  mapping.device = static_cast<int32_t>(event.device);
  mapping.birth = trace_.last_step();
  mapping.birth_t_ns = event.t_ns;
  mapping.stack = event.stack;
  mapping.stream = event.stream;
  mapping.has_stream = event.has(format::kHasStream);
  const auto held = held_.find(Place{event.handle, kPhysicalSpace});
  if (event.has(format::kHasHandle) && held != held_.end()) {
    mapping.physical = held->second;
    ++physical_[held->second].mappings;
    if (!event.has(format::kHasDevice)) mapping.device = trace_.rows.device[held->second];
  }
  const Reservation* reservation = ReservationOf(event.address);
  if (reservation != nullptr && reservation->holds_blocks && mapping.physical != kNoRow) {
    MarkSegment(mapping.physical);
  }
  mappings_[event.address] = static_cast<uint32_t>(trace_.mappings.size());
  AddSideEvent(SideEvent::kMap, trace_.mappings.size(), event.t_ns);
  trace_.mappings.push_back(mapping);
  NoteDriverCall(event, mapping.physical);
}

// One call may unmap several adjacent mappings.
void TraceBuilder::OnUnmap(const format::Event& event) {
  if (Failed(event)) return;
  const uint64_t end = event.address + std::max<uint64_t>(event.size, 1);
  std::vector<uint32_t> ended;
  for (auto it = mappings_.lower_bound(event.address); it != mappings_.end() && it->first < end;
       ++it) {
    ended.push_back(it->second);
  }
  const RowId physical = ended.empty() ? kNoRow : trace_.mappings[ended.front()].physical;
  for (uint32_t mapping : ended) EndMapping(mapping, event.t_ns, event.stack);
  NoteDriverCall(event, physical);
}

void TraceBuilder::EndMapping(uint32_t index, int64_t t_ns, uint32_t stack) {
  Mapping& mapping = trace_.mappings[index];
  mappings_.erase(mapping.address);
  mapping.death_t_ns = t_ns;
  mapping.unmap_stack = stack;
  const auto physical = physical_.find(mapping.physical);
  if (physical != physical_.end() && --physical->second.mappings == 0 &&
      physical->second.released) {
    physical_.erase(physical);
    AddDeath(mapping.physical, t_ns);
  }
  mapping.death = trace_.last_step();
  AddSideEvent(SideEvent::kUnmap, index, t_ns);
}

// Returns the driver allocation that contains the address.
RowId TraceBuilder::AllocationAround(int32_t device, uint64_t address) const {
  const Rows& rows = trace_.rows;
  const auto after = ranges_.upper_bound({device, address});
  if (after == ranges_.begin()) return kNoRow;
  const RowId row = std::prev(after)->second;
  const bool is_inside = rows.device[row] == device && address - rows.address[row] < rows.size[row];
  return is_inside ? row : kNoRow;
}

// A region does not change the owner of the memory around it. All known host memory is CUDA's.
void TraceBuilder::MarkIfUnbacked(RowId region) {
  Rows& rows = trace_.rows;
  const uint64_t start = rows.address[region];
  if (rows.device[region] == kHostDevice ||
      AllocationAround(rows.device[region], start) != kNoRow) {
    return;
  }
  auto mapping = mappings_.upper_bound(start);
  if (mapping != mappings_.begin()) {
    const Mapping& before = trace_.mappings[std::prev(mapping)->second];
    if (start - before.address < before.size && before.physical != kNoRow) return;
  }
  rows.flags[region] |= kRowUnbacked;
}

// Marks the driver memory that contains a block as a framework's segment.
void TraceBuilder::MarkSegments(RowId block) {
  Rows& rows = trace_.rows;
  const uint64_t start = rows.address[block], end = start + rows.size[block];
  if (const RowId row = AllocationAround(rows.device[block], start); row != kNoRow)
    return MarkSegment(row);
  if (!MarkMappings(start, end)) {
    rows.flags[block] |= kRowUnbacked;
    return;
  }
  Reservation* reservation = ReservationOf(start);
  if (reservation == nullptr || reservation->holds_blocks) return;
  reservation->holds_blocks = true;
  MarkMappings(reservation->address, reservation->address + reservation->size);
}

// Marks the memory mapped between `start` and `end`; returns whether there is any.
bool TraceBuilder::MarkMappings(uint64_t start, uint64_t end) {
  bool any = false;
  auto it = mappings_.upper_bound(start);
  if (it != mappings_.begin()) --it;
  for (; it != mappings_.end() && it->first < end; ++it) {
    const Mapping& mapping = trace_.mappings[it->second];
    if (mapping.address + mapping.size <= start || mapping.physical == kNoRow) continue;
    MarkSegment(mapping.physical);
    any = true;
  }
  return any;
}

}  // namespace gmt::analysis
