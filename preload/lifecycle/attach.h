// preload/lifecycle/attach.h
//
// Beginning and ending what is recorded for an attach, at the hooked call of the GPU that finds the
// session's word changed (preload/process/door.h). What happens inside such a call may happen nowhere else in
// the process meanwhile: status is kTurning, and the calls of other threads pass through.
//
// Thread safety: one thread at a time, which the status sees to.

#ifndef GMT_PRELOAD_LIFECYCLE_ATTACH_H_
#define GMT_PRELOAD_LIFECYCLE_ATTACH_H_

#include "preload/process/process.h"
#include "session/session_file.h"

namespace gmt::preload {

// Puts memory behind the session and begins with empty tables. Returns the status from now on:
// kRecording; kDormant where nobody wants it any more, or it cannot be (Control.attach_errno).
Process::Status BeginAttach(Process* p);

// Stops, and waits a little for who is writing. Returns kDormant, or kEnding where somebody still
// writes: then the next hooked call tries again. `first`: no call has tried yet.
Process::Status EndAttach(Process* p, bool first);

// Keeps what an attach will need of a session that was created with a door.
void OpenDoorOf(Process* p, const session::CreatedSession& session);

// At the process's end: a session that nobody records to is of no use to anybody.
void RemoveDormantSession();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_ATTACH_H_
