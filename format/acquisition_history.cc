#include "format/acquisition_history.h"

namespace gmt::format {
namespace {

// A few hostile bytes can claim many rows; no process holds so many places. Beyond it frees are
// written in full.
constexpr size_t kMaxPlaces = 1u << 22;

// Addresses, reservations, handles ... of one number are different places. 0: never returned.
int SpaceOf(Kind kind) {
  switch (kind) {
    case ALLOC:
    case FREE:
    case FREE_DONE:
      return 1;
    case RESERVE:
    case UNRESERVE:
      return 2;
    case CREATE:
    case RELEASE:
      return 3;
    case MAP:
    case UNMAP:
      return 4;
    case IMPORT:
    case UNIMPORT:
      return 5;
    case REGISTER:
    case UNREGISTER:
      return 6;
    default:
      return 0;
  }
}

}  // namespace

AcquisitionHistory::Place AcquisitionHistory::PlaceOf(const Event& event) {
  return {SpaceOf(event.kind), event.heap, event.device, event.address};
}

void AcquisitionHistory::Add(const Event& event) {
  const uint64_t row = rows_++;
  const Place place = PlaceOf(event);
  if (place.space == 0) return;
  const auto [at, is_new] = row_at_.try_emplace(place, row);
  if (is_new && row_at_.size() > kMaxPlaces) {
    row_at_.erase(at);
    return;
  }
  if (!is_new) kept_.erase(at->second);
  at->second = row;
  kept_[row] = {event.present, event.address, event.size,    event.stream, event.pool,
                event.heap,    event.device,  event.context, event.memory};
}

uint64_t AcquisitionHistory::DistanceTo(const Event& event) const {
  const auto found = row_at_.find(PlaceOf(event));
  return found == row_at_.end() ? 0 : rows_ - found->second;
}

const Acquired* AcquisitionHistory::Find(uint64_t distance) const {
  if (distance == 0 || distance > rows_) return nullptr;
  const auto found = kept_.find(rows_ - distance);
  return found == kept_.end() ? nullptr : &found->second;
}

void CompleteReturn(const Acquired& acquired, Event* event) {
  if (event->heap == 0) event->heap = acquired.heap;
  if (event->memory == MEMORY_UNSPECIFIED) event->memory = acquired.memory;
  const auto fill = [&](Present bit, auto* value, auto known) {
    if (event->has(bit) || (acquired.present & bit) == 0) return;
    *value = known;
    event->present |= bit;
  };
  fill(kHasDevice, &event->device, acquired.device);
  fill(kHasContext, &event->context, acquired.context);
  fill(kHasAddress, &event->address, acquired.address);
  fill(kHasSize, &event->size, acquired.size);
  fill(kHasStream, &event->stream, acquired.stream);
  fill(kHasPool, &event->pool, acquired.pool);
}

}  // namespace gmt::format
