// format/live_columns.h
//
// A live set (Snapshot.live) as a list of acquisitions. Each live allocation is the event that
// created it, updated to the time of the snapshot.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_LIVE_COLUMNS_H_
#define GMT_FORMAT_LIVE_COLUMNS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "format/event.h"
#include "format/messages_fwd.h"

namespace gmt::format {

// Stores these fields of each event: kind, present, t_ns, thread, heap, memory, device, context,
// address, size, stack, stream, forward_stack, handle, offset, pool, requested, api, name, scope,
// dtype, shape, roles. Other fields are dropped.
gmt::Live EncodeLive(const std::vector<Event>& live);

// Fails if the columns claim more rows than a live set can have.
absl::StatusOr<std::vector<Event>> DecodeLive(const gmt::Live& columns);

// Iterates over rows without decoding them.
class LiveCursor {
 public:
  explicit LiveCursor(const gmt::Live* columns);

  bool at_end() const { return row_ >= count_; }
  uint32_t row() const { return row_; }
  void Next();

  // Returns whether both rows are equal except for their roles, which change while memory is held.
  // REQUIRES: neither cursor is at its end.
  bool SameRow(const LiveCursor& other) const;
  // REQUIRES: not at its end.
  uint32_t roles() const;

 private:
  friend class LiveAppender;
  void TakeDifferences();

  const gmt::Live* columns_;
  uint32_t count_;
  uint32_t row_ = 0;
  int64_t address_ = 0, t_ns_ = 0;
};

// Builds the columns of a live set row by row. They are complete after Finish().
class LiveAppender {
 public:
  explicit LiveAppender(gmt::Live* columns) : columns_(columns) {}

  void Append(const Event& event);
  // REQUIRES: not at its end.
  void Append(const LiveCursor& row) { Append(row, row.roles()); }
  void Append(const LiveCursor& row, uint32_t roles);
  void Finish();

 private:
  void AppendDifferences(int64_t address, int64_t t_ns);

  gmt::Live* columns_;
  int64_t last_address_ = 0, last_t_ns_ = 0;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_LIVE_COLUMNS_H_
