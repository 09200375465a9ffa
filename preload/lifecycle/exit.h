// preload/lifecycle/exit.h
//
// A normal end of the process: how it exits is noted in the session, and the collector gets up to
// exit_wait to complete the file, because in a container the end of PID 1 is the end of everything.

#ifndef GMT_PRELOAD_LIFECYCLE_EXIT_H_
#define GMT_PRELOAD_LIFECYCLE_EXIT_H_

namespace gmt::preload {

// Registers for the process's exit status. Once per process. `session` is the session's file, for
// the line that says where to find it when its collector has died; it is copied.
void WatchExit(const char* session);

// The path that was given to that; "" before, and for a session without a name.
const char* SessionPath();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_EXIT_H_
