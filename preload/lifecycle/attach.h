// preload/lifecycle/attach.h
//
// Begins and ends the recording of an attach, inside the hooked GPU call that notices the change of
// the session's attach_wanted (preload/process/attach_gate.h). Only one thread at a time does this:
// status is kSwitching, and the calls of other threads pass through.
//
// Thread safety: one thread at a time, enforced by the status.

#ifndef GMT_PRELOAD_LIFECYCLE_ATTACH_H_
#define GMT_PRELOAD_LIFECYCLE_ATTACH_H_

#include "preload/process/process.h"
#include "session/session_file.h"

namespace gmt::preload {

// Backs the session's sections with memory and starts with empty tables. Returns the new status:
// kRecording, or kDormant if the request has been withdrawn or cannot be met
// (Control.attach_errno).
Process::Status BeginAttach(Process* p);

// Stops recording and waits briefly for its writers. Returns kDormant, or kEnding if a writer is
// still active; the next hooked call then retries. `first`: this is the first try.
Process::Status EndAttach(Process* p, bool first);

// Keeps what attaches will need of a session that was created with an attach gate.
void OpenAttachGate(Process* p, const session::CreatedSession& session);

// At process exit: removes the session if it is dormant, since it has no further use.
void RemoveDormantSession();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_ATTACH_H_
