#include "format/kept_rows.h"

#include <vector>

#include "format/live_columns.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

void AddKept(const AcquisitionHistory& history, gmt::Checkpoint* checkpoint) {
  std::vector<Event> events;
  uint64_t last_row = 0;
  for (const Acquired& acquired : history.Kept()) {
    Event& event = events.emplace_back();
    event.kind = acquired.kind;
    event.present = acquired.present;
    event.heap = acquired.heap;
    event.memory = acquired.memory;
    event.device = acquired.device;
    event.context = acquired.context;
    event.address = acquired.address;
    event.size = acquired.size;
    event.stream = acquired.stream;
    event.pool = acquired.pool;
    checkpoint->add_acquired_row(acquired.row - last_row);
    last_row = acquired.row;
  }
  *checkpoint->mutable_acquired() = EncodeLive(events);
}

absl::Status Restore(const gmt::Checkpoint& checkpoint, AcquisitionHistory* history) {
  const auto events = DecodeLive(checkpoint.acquired());
  if (!events.ok()) return events.status();
  if (events->size() != static_cast<size_t>(checkpoint.acquired_row_size()))
    return absl::DataLossError("rows");
  uint64_t row = 0;
  for (size_t i = 0; i < events->size(); ++i) {
    const Event& event = (*events)[i];
    row += checkpoint.acquired_row(static_cast<int>(i));
    history->AddKept({row, event.address, event.size, event.stream, event.pool,
                      static_cast<uint32_t>(event.present), event.heap, event.device, event.context,
                      event.memory, event.kind});
  }
  return absl::OkStatus();
}

}  // namespace gmt::format
