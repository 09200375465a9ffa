#include "format/event_counts.h"

#include "format/columns.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// A chunk has a handful of rows, of which the first ones are those of nearly all events.
void EventCounter::Add(Kind kind, uint32_t heap, uint32_t result) {
  for (EventCount& row : rows_) {
    if (row.kind != kind || row.heap != heap || row.result != result) continue;
    ++row.count;
    return;
  }
  if (rows_.size() <= kMaxRows) rows_.push_back({kind, heap, result, 1});
}

void EventCounter::Store(gmt::EventCounts* counts) const {
  if (rows_.size() > kMaxRows) return;
  for (const EventCount& row : rows_) {
    counts->add_kind(static_cast<Events::Kind>(row.kind));
    counts->add_heap(row.heap);
    counts->add_result(row.result);
    counts->add_count(row.count);
  }
  TrimColumn(counts->mutable_heap());
  TrimColumn(counts->mutable_result());
}

std::vector<EventCount> DecodeCounts(const gmt::EventCounts& counts) {
  std::vector<EventCount> rows(static_cast<size_t>(counts.count_size()));
  for (int row = 0; row < counts.count_size(); ++row) {
    rows[static_cast<size_t>(row)] = {static_cast<Kind>(ColumnAt(counts.kind(), row)),
                                      ColumnAt(counts.heap(), row), ColumnAt(counts.result(), row),
                                      counts.count(row)};
  }
  return rows;
}

}  // namespace gmt::format
