// format/event_columns.h
//
// Decodes the columns of a file (proto/gmt.proto, Events) to events (format/event.h). Restores
// exactly the input of format/event_encoder.h.
//
// Thread safety: pure functions, except for the history argument.

#ifndef GMT_FORMAT_EVENT_COLUMNS_H_
#define GMT_FORMAT_EVENT_COLUMNS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "format/acquisition_history.h"
#include "format/event.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// Maximum number of events in a chunk; a chunk that claims more is damaged.
inline constexpr uint32_t kMaxEventsOfChunk = 1u << 18;

// Appends the events to `batch`. `base_t_ns` is Chunk.first_t_ns. `history` is the one of the file
// segment; the rows of this chunk are added to it. Fails if the columns contradict each other;
// events appended before that remain.
absl::Status DecodeEvents(const gmt::Events& columns, int64_t base_t_ns, Returns returns,
                          AcquisitionHistory* history, EventBatch* batch);

}  // namespace gmt::format

#endif  // GMT_FORMAT_EVENT_COLUMNS_H_
