#include "format/live_columns.h"

#include "absl/strings/str_cat.h"
#include "format/columns.h"

// Columns that are members of Event under the same name and written as they are.
// clang-format off
#define GMT_LIVE_COLUMNS(COLUMN) \
  COLUMN(heap) COLUMN(memory) COLUMN(device) COLUMN(context) COLUMN(size) COLUMN(stack) \
  COLUMN(stream) COLUMN(thread) COLUMN(forward_stack) COLUMN(present) COLUMN(kind) \
  COLUMN(handle) COLUMN(pool) COLUMN(requested) COLUMN(offset) COLUMN(api) COLUMN(name) \
  COLUMN(scope)
// clang-format on

namespace gmt::format {
namespace {

constexpr uint32_t kMaxLive = 1u << 22;

}  // namespace

gmt::Live EncodeLive(const std::vector<Event>& live) {
  gmt::Live result;
  gmt::Live* columns = &result;
  columns->set_count(static_cast<uint32_t>(live.size()));
  int64_t last_address = 0, last_t_ns = 0;
  for (const Event& event : live) {
#define GMT_PUT(name) columns->add_##name(event.name);
    GMT_LIVE_COLUMNS(GMT_PUT)
#undef GMT_PUT
    const auto address = static_cast<int64_t>(event.address);
    columns->add_address(SubtractWrapping(address, last_address));
    columns->add_t_ns(SubtractWrapping(event.t_ns, last_t_ns));
    last_address = address;
    last_t_ns = event.t_ns;
  }
#define GMT_TRIM(name) TrimColumn(columns->mutable_##name());
  GMT_LIVE_COLUMNS(GMT_TRIM)
  GMT_TRIM(address)
  GMT_TRIM(t_ns)
#undef GMT_TRIM
  return result;
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

}  // namespace gmt::format
