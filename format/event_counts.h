// format/event_counts.h
//
// EventCounts: how many events of each kind a chunk holds, stored outside of its compressed body.
// A summary of a recording (`gpumemtrace info`) then needs no events, which are nearly all of a
// file and nearly all of the time that reading it takes.
//
// Thread safety: plain values; one thread at a time for one EventCounter.

#ifndef GMT_FORMAT_EVENT_COUNTS_H_
#define GMT_FORMAT_EVENT_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/kinds.h"

namespace gmt {
class EventCounts;
}

namespace gmt::format {

// The events that agree in all of these fields.
struct EventCount {
  Kind kind = KIND_UNSPECIFIED;
  // Set for acquisitions and for returns, which are completed as with Returns::kCompleted; 0 for
  // other families.
  uint32_t heap = 0;    // string
  uint32_t result = 0;  // CUDA error code
  uint64_t count = 0;

  bool operator==(const EventCount&) const = default;
};

// Counts the events of one chunk.
class EventCounter {
 public:
  // A chunk with more rows has no counts: its readers have to read its events.
  static constexpr size_t kMaxRows = 64;

  void Add(Kind kind, uint32_t heap, uint32_t result);
  void Clear() { rows_.clear(); }
  // Writes nothing if there are too many rows.
  void Store(gmt::EventCounts* counts) const;

 private:
  std::vector<EventCount> rows_;  // in the order of first appearance
};

// Returns nothing if there are no counts.
std::vector<EventCount> DecodeCounts(const gmt::EventCounts& counts);

}  // namespace gmt::format

#endif  // GMT_FORMAT_EVENT_COUNTS_H_
