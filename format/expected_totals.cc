#include "format/expected_totals.h"

namespace gmt::format {
namespace {

// Returns how the event changes the allocated bytes; may wrap around.
uint64_t Change(const Event& event, const Acquired* acquired) {
  const uint64_t known = acquired != nullptr ? acquired->size : 0;
  const uint64_t size = event.has(kHasSize) ? event.size : known;
  if (event.kind == ALLOC) return size;
  return event.kind == FREE ? -size : 0;
}

}  // namespace

void ExpectedTotals::Clear() {
  totals_.clear();
  last_ = nullptr;
  lost_ = false;
}

ExpectedTotals::Differences ExpectedTotals::Encode(const Event& event, const Acquired* acquired) {
  Differences differences = {static_cast<int64_t>(event.total_allocated),
                             static_cast<int64_t>(event.total_reserved)};
  if (!event.has(kHasTotals)) return differences;
  Totals& totals = Of(event);
  if (event.has(kHasTotalAllocated)) {
    const uint64_t expected = totals.allocated + Change(event, acquired);
    differences.allocated = static_cast<int64_t>(event.total_allocated - expected);
    totals.allocated = event.total_allocated;
  }
  if (event.has(kHasTotalReserved)) {
    differences.reserved = static_cast<int64_t>(event.total_reserved - totals.reserved);
    totals.reserved = event.total_reserved;
  }
  return differences;
}

void ExpectedTotals::Decode(Differences differences, const Acquired* acquired, Event* event) {
  auto allocated = static_cast<uint64_t>(differences.allocated);
  auto reserved = static_cast<uint64_t>(differences.reserved);
  if (event->has(kHasTotals) && lost_) {
    allocated = reserved = 0;
    event->present &= ~uint64_t{kHasTotals};
  } else if (event->has(kHasTotals)) {
    Totals& totals = Of(*event);
    if (event->has(kHasTotalAllocated))
      totals.allocated = allocated += totals.allocated + Change(*event, acquired);
    if (event->has(kHasTotalReserved)) totals.reserved = reserved += totals.reserved;
  }
  event->total_allocated = allocated;
  event->total_reserved = reserved;
}

}  // namespace gmt::format
