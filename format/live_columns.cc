#include "format/live_columns.h"

#include "absl/strings/str_cat.h"
#include "format/columns.h"
#include "proto/gmt.pb.h"

// Columns that are members of Event with the same name and are written unchanged. All except
// `roles` are constant while an allocation is held. clang-format off
#define GMT_LIVE_LASTING_COLUMNS(COLUMN)                                                         \
  COLUMN(heap)                                                                                   \
  COLUMN(memory)                                                                                 \
  COLUMN(device)                                                                                 \
  COLUMN(context)                                                                                \
  COLUMN(size)                                                                                   \
  COLUMN(stack) COLUMN(stream) COLUMN(thread) COLUMN(forward_stack) COLUMN(present) COLUMN(kind) \
      COLUMN(handle) COLUMN(pool) COLUMN(requested) COLUMN(offset) COLUMN(api) COLUMN(name)      \
          COLUMN(scope) COLUMN(dtype) COLUMN(shape)
#define GMT_LIVE_COLUMNS(COLUMN) GMT_LIVE_LASTING_COLUMNS(COLUMN) COLUMN(roles)
// clang-format on

namespace gmt::format {
namespace {

constexpr uint32_t kMaxLive = 1u << 22;

}  // namespace

gmt::Live EncodeLive(const std::vector<Event>& live) {
  gmt::Live columns;
  LiveAppender appender(&columns);
  for (const Event& event : live) appender.Append(event);
  appender.Finish();
  return columns;
}

absl::StatusOr<std::vector<Event>> DecodeLive(const gmt::Live& columns) {
  if (columns.count() > kMaxLive) {
    return absl::OutOfRangeError(
        absl::StrCat("a snapshot claims ", columns.count(), " live allocations"));
  }
  std::vector<Event> live(columns.count());
  int64_t address = 0, t_ns = 0;
  for (int row = 0; row < static_cast<int>(live.size()); ++row) {
    Event& event = live[static_cast<size_t>(row)];
#define GMT_TAKE(name) \
  event.name = static_cast<decltype(event.name)>(ColumnAt(columns.name(), row));
    GMT_LIVE_COLUMNS(GMT_TAKE)
#undef GMT_TAKE
    address = AddWrapping(address, ColumnAt(columns.address(), row));
    t_ns = AddWrapping(t_ns, ColumnAt(columns.t_ns(), row));
    event.address = static_cast<uint64_t>(address);
    event.t_ns = t_ns;
  }
  return live;
}

// ---- LiveCursor ---------------------------------------------------------------------------------

LiveCursor::LiveCursor(const gmt::Live* columns) : columns_(columns), count_(columns->count()) {
  TakeDifferences();
}

void LiveCursor::Next() {
  ++row_;
  TakeDifferences();
}

void LiveCursor::TakeDifferences() {
  if (at_end()) return;
  const int row = static_cast<int>(row_);
  address_ = AddWrapping(address_, ColumnAt(columns_->address(), row));
  t_ns_ = AddWrapping(t_ns_, ColumnAt(columns_->t_ns(), row));
}

bool LiveCursor::SameRow(const LiveCursor& other) const {
  if (address_ != other.address_ || t_ns_ != other.t_ns_) return false;
  const int row = static_cast<int>(row_), other_row = static_cast<int>(other.row_);
#define GMT_DIFFERS(name) \
  if (ColumnAt(columns_->name(), row) != ColumnAt(other.columns_->name(), other_row)) return false;
  GMT_LIVE_LASTING_COLUMNS(GMT_DIFFERS)
#undef GMT_DIFFERS
  return true;
}

uint32_t LiveCursor::roles() const { return ColumnAt(columns_->roles(), static_cast<int>(row_)); }

// ---- LiveAppender -------------------------------------------------------------------------------

void LiveAppender::Append(const Event& event) {
#define GMT_PUT(name) columns_->mutable_##name()->Add(event.name);
  GMT_LIVE_COLUMNS(GMT_PUT)
#undef GMT_PUT
  AppendDifferences(static_cast<int64_t>(event.address), event.t_ns);
}

void LiveAppender::Append(const LiveCursor& row, uint32_t roles) {
  const gmt::Live& from = *row.columns_;
  const int at = static_cast<int>(row.row_);
#define GMT_COPY(name) columns_->mutable_##name()->Add(ColumnAt(from.name(), at));
  GMT_LIVE_LASTING_COLUMNS(GMT_COPY)
#undef GMT_COPY
  columns_->add_roles(roles);
  AppendDifferences(row.address_, row.t_ns_);
}

void LiveAppender::AppendDifferences(int64_t address, int64_t t_ns) {
  columns_->add_address(SubtractWrapping(address, last_address_));
  columns_->add_t_ns(SubtractWrapping(t_ns, last_t_ns_));
  last_address_ = address;
  last_t_ns_ = t_ns;
  columns_->set_count(columns_->count() + 1);
}

void LiveAppender::Finish() {
#define GMT_TRIM(name) TrimColumn(columns_->mutable_##name());
  GMT_LIVE_COLUMNS(GMT_TRIM)
  GMT_TRIM(address)
  GMT_TRIM(t_ns)
#undef GMT_TRIM
}

}  // namespace gmt::format
