// preload/lifecycle/spawn_collector.h
//
// Starts the collector from inside a hook of a threaded process without visible effects on the
// target: no SIGCHLD, no child that its wait() could find, no atfork handlers run, and no
// descriptor, signal mask or environment variable of ours left behind.
//
//   shim --clone(VM, VFORK, no exit signal)--> helper --clone(VM, VFORK, SIGCHLD)--> collector
//        <-- reaped with __WCLONE ------------ exits <-- returns at exec
//
// The collector ends up as a child of init (or of the nearest subreaper), in its own Unix session,
// with standard streams on /dev/null, with the session, the target's pidfd and the recording as
// descriptors 3 to 5, and without LD_* variables.

#ifndef GMT_PRELOAD_LIFECYCLE_SPAWN_COLLECTOR_H_
#define GMT_PRELOAD_LIFECYCLE_SPAWN_COLLECTOR_H_

#include <limits.h>
#include <stddef.h>

namespace gmt::preload {

// Finds $GPUMEMTRACE_COLLECTOR, or else gpumemtrace-collector beside this library, in ../bin,
// ../../bin or ../libexec. Returns false if there is none.
bool FindCollector(const char* shim_path, char* path, size_t size);

// Returns 0 after the collector's image has started, otherwise the errno of the step that failed.
// pid_fd may be -1.
int SpawnCollector(const char* path, int session_fd, int pid_fd, int output_fd);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_SPAWN_COLLECTOR_H_
