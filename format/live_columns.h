// format/live_columns.h
//
// A live set (Snapshot.live) as a list of acquisitions: each live allocation is the event that made
// it, with what is known of it at the time of the snapshot.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_LIVE_COLUMNS_H_
#define GMT_FORMAT_LIVE_COLUMNS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "format/event.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// Of each event: kind, present, t_ns, thread, heap, memory, device, context, address, size, stack,
// stream, forward_stack, handle, offset, pool, requested, api, name, scope. The rest is not kept.
gmt::Live EncodeLive(const std::vector<Event>& live);

// Fails where the columns claim more rows than a live set can have.
absl::StatusOr<std::vector<Event>> DecodeLive(const gmt::Live& columns);

}  // namespace gmt::format

#endif  // GMT_FORMAT_LIVE_COLUMNS_H_
