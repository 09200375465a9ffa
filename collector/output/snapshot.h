// collector/output/snapshot.h
//
// Converts the live set into the messages of a recording (proto/gmt.proto, Snapshot).
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_SNAPSHOT_H_
#define GMT_COLLECTOR_OUTPUT_SNAPSHOT_H_

#include "collector/events/event_translator.h"
#include "collector/events/live_model.h"
#include "collector/events/segments.h"
#include "collector/events/stack_translator.h"
#include "format/messages_fwd.h"
#include "session/session_map.h"

namespace gmt::collector {

// Returns rows in the order of allocation.
gmt::Live MakeLiveRows(const LiveModel& model, EventTranslator* translator);

// Marks the rows of a checkpoint that have held blocks.
void AddSegments(const Segments& segments, gmt::Checkpoint* checkpoint);

// Adds the driver calls that the target's threads are in. In a running process, a row may be
// slightly out of date.
void AddInFlight(const session::SessionMap& session, EventTranslator* translator,
                 StackTranslator* stacks, gmt::Snapshot* snapshot);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_SNAPSHOT_H_
