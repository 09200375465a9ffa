#include "collector/events/segments.h"

#include <algorithm>
#include <iterator>

namespace gmt::collector {
namespace {

using session::LiveValue;
using session::Space;

uint64_t SizeOf(uint64_t size) { return size; }
template <typename Range>
uint64_t SizeOf(const Range& range) {
  return range.size;
}

// Returns the range of a map by address that contains `address`; end() if there is none.
template <typename Ranges>
typename Ranges::iterator RangeAround(Ranges& ranges, uint64_t address) {
  const auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  const auto at = std::prev(after);
  return address - at->first < SizeOf(at->second) ? at : ranges.end();
}

}  // namespace

void Segments::OnBorn(const Place& place, const LiveValue& live) {
  switch (place.space) {
    case Space::kBlock:
      return OnBlock(place.value);
    case Space::kDevice:
      without_blocks_[place.value] = live.size;
      [[fallthrough]];
    case Space::kPhysical:
      memory_[place] = {live.size, live.time_ns, live.device};
      return;
    case Space::kReservation:
      reservations_without_blocks_[place.value] = {live.size, {}};
      return;
    case Space::kMapping:
      return OnMapping(place.value, live.stream);
    default:
      return;
  }
}

void Segments::OnEnded(const Place& place, const LiveValue& live) {
  switch (place.space) {
    case Space::kReservation:
      reservations_.erase(place.value);
      reservations_without_blocks_.erase(place.value);
      return;
    case Space::kMapping:
      return ForgetMappingsOf(live.stream);
    case Space::kPhysical:
      ForgetMappingsOf(place.value);
      break;
    case Space::kDevice:
      without_blocks_.erase(place.value);
      break;
    default:
      return;
  }
  const auto memory = memory_.find(place);
  if (memory == memory_.end()) return;
  if (memory->second.is_segment) bytes_[memory->second.device].now -= memory->second.size;
  memory_.erase(memory);
}

bool Segments::Contains(uint64_t address) const {
  const auto memory = memory_.find({Space::kDevice, address});
  return memory != memory_.end() && memory->second.is_segment;
}

void Segments::OnBlock(uint64_t address) {
  if (!without_blocks_.empty()) {
    const auto around = RangeAround(without_blocks_, address);
    if (around != without_blocks_.end()) {
      Mark(&memory_[{Space::kDevice, around->first}]);
      without_blocks_.erase(around);
      return;
    }
  }
  if (reservations_without_blocks_.empty()) return;
  const auto around = RangeAround(reservations_without_blocks_, address);
  if (around == reservations_without_blocks_.end()) return;
  const auto [start, reservation] = *around;
  reservations_without_blocks_.erase(around);
  reservations_[start] = reservation.size;
  for (const uint64_t handle : reservation.mapped) OnMapping(start, handle);
}

void Segments::OnMapping(uint64_t address, uint64_t handle) {
  if (RangeAround(reservations_, address) == reservations_.end()) {
    const auto around = RangeAround(reservations_without_blocks_, address);
    if (around != reservations_without_blocks_.end()) around->second.mapped.push_back(handle);
    return;
  }
  const auto memory = memory_.find({Space::kPhysical, handle});
  if (memory != memory_.end()) Mark(&memory->second);
}

void Segments::ForgetMappingsOf(uint64_t handle) {
  for (auto& [start, reservation] : reservations_without_blocks_)
    std::erase(reservation.mapped, handle);
}

// The maximum is that of the time when the memory was allocated, a moment before its first block.
void Segments::Mark(Memory* memory) {
  if (memory->is_segment) return;
  memory->is_segment = true;
  last_born_ns_ = std::max(last_born_ns_, memory->born_ns);
  Bytes& bytes = bytes_[memory->device];
  bytes.now += memory->size;
  if (bytes.now <= bytes.peak) return;
  bytes.peak = bytes.now;
  bytes.peak_ns = last_born_ns_;
}

}  // namespace gmt::collector
