// preload/lifecycle/spawn_collector.h
//
// Starting the collector from inside a hook of a threaded process, so that the target does not
// notice: no SIGCHLD, no child for its wait() to find, no atfork handler run, no descriptor, signal
// mask or environment variable of ours left.
//
//   shim --clone(VM, VFORK, no exit signal)--> helper --clone(VM, VFORK, SIGCHLD)--> execve
//   collector
//        <-- reaped with __WCLONE ------------ exits <-- returns at exec
//
// The collector ends up a child of init (or of the nearest subreaper), in a session of its own,
// with standard streams on /dev/null, the session, the target's pidfd and the recording as
// descriptors 3 to 5, and without LD_* variables.

#ifndef GMT_PRELOAD_LIFECYCLE_SPAWN_COLLECTOR_H_
#define GMT_PRELOAD_LIFECYCLE_SPAWN_COLLECTOR_H_

#include <limits.h>
#include <stddef.h>

namespace gmt::preload {

// $GPUMEMTRACE_COLLECTOR, else gpumemtrace-collector beside this library, in ../bin or ../libexec.
// False if none is there.
bool FindCollector(const char* shim_path, char* path, size_t size);

// Returns 0 once the collector's image runs, else the errno of the step that failed. pid_fd may be
// -1.
int SpawnCollector(const char* path, int session_fd, int pid_fd, int output_fd);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_SPAWN_COLLECTOR_H_
