// preload/lifecycle/exit.h
//
// Normal exit of the process: notes the exit status in the session and gives the collector up to
// exit_wait to complete the file, because in a container everything ends with PID 1.

#ifndef GMT_PRELOAD_LIFECYCLE_EXIT_H_
#define GMT_PRELOAD_LIFECYCLE_EXIT_H_

namespace gmt::preload {

// Registers a handler for the process's exit status. REQUIRES: called once per process. `session`:
// path of the session's file, used in the message that says where to find it if its collector has
// died. It is copied.
void WatchExit(const char* session);

// Returns the path that was passed to WatchExit(); "" before that, and for a session without a
// name.
const char* SessionPath();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_EXIT_H_
