// collector/output/snapshot.h
//
// The live set as the file has it (proto/gmt.proto, Snapshot).
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_SNAPSHOT_H_
#define GMT_COLLECTOR_OUTPUT_SNAPSHOT_H_

#include "collector/events/event_translator.h"
#include "collector/events/live_model.h"
#include "collector/events/stack_translator.h"
#include "format/messages_fwd.h"
#include "session/session_map.h"

namespace gmt::collector {

// Rows in the order of allocation.
gmt::Live MakeLiveRows(const LiveModel& model, EventTranslator* translator);

// What the threads of the target are doing inside the driver. In a process that runs, a row may be
// of a moment ago.
void AddInFlight(const session::SessionMap& session, EventTranslator* translator,
                 StackTranslator* stacks, gmt::Snapshot* snapshot);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_SNAPSHOT_H_
