// format/event_columns.h
//
// From the columns of a file (proto/gmt.proto, Events) to events (format/event.h), one to one: gives
// back exactly what format/event_encoder.h was given.
//
// Thread safety: pure functions, but for the history they are given.

#ifndef GMT_FORMAT_EVENT_COLUMNS_H_
#define GMT_FORMAT_EVENT_COLUMNS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "format/acquisition_history.h"
#include "format/event.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// The most events one chunk may hold; a chunk that claims more is damaged.
inline constexpr uint32_t kMaxEventsOfChunk = 1u << 18;

// `base_t_ns` is Chunk.first_t_ns. `history` is that of the file segment so far and takes this
// chunk's rows. Appends to `batch`. Fails where the columns contradict each other; what was appended
// by then stays.
absl::Status DecodeEvents(const gmt::Events& columns, int64_t base_t_ns, Returns returns,
                          AcquisitionHistory* history, EventBatch* batch);

}  // namespace gmt::format

#endif  // GMT_FORMAT_EVENT_COLUMNS_H_
