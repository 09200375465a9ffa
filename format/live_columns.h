// format/live_columns.h
//
// A live set (Snapshot.live) as a list of acquisitions: each live allocation is the event that made
// it, with what is known of it at the time of the snapshot.
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

// Of each event: kind, present, t_ns, thread, heap, memory, device, context, address, size, stack,
// stream, forward_stack, handle, offset, pool, requested, api, name, scope, dtype, shape, roles. The
// rest is not kept.
gmt::Live EncodeLive(const std::vector<Event>& live);

// Fails where the columns claim more rows than a live set can have.
absl::StatusOr<std::vector<Event>> DecodeLive(const gmt::Live& columns);

// Looks at one row after the other, without decoding them.
class LiveCursor {
 public:
  explicit LiveCursor(const gmt::Live* columns);

  bool at_end() const { return row_ >= count_; }
  uint32_t row() const { return row_; }
  void Next();

  // Whether both rows say the same, but for their roles: these change while memory is held.
  // REQUIRES: neither is at its end.
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

// Makes the columns of a live set row by row. They are whole after Finish().
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
