// preload/lifecycle/output_file.h
//
// Naming and creating the recording. The shim does it, in the target's working directory and with
// its rights, so that the line on stderr names a file that exists, and two processes never take one
// name.
//
//   the pattern's name          gpumemtrace.%h.%p.gmt
//   taken by this same run      run.PID.gmt     (run id in the file, or the file is still being
//   written) taken by an earlier run     run.1.gmt, run.2.gmt, ... not writable                the
//   same name in $XDG_STATE_HOME/gpumemtrace

#ifndef GMT_PRELOAD_LIFECYCLE_OUTPUT_FILE_H_
#define GMT_PRELOAD_LIFECYCLE_OUTPUT_FILE_H_

#include <limits.h>
#include <stddef.h>

namespace gmt::preload {

struct OutputFile {
  int fd = -1;  // created empty, locked with flock, close-on-exec; the caller closes it
  char path[PATH_MAX + 256] = {};  // absolute
  bool moved = false;              // the place asked for was not writable
  int error = 0;                   // errno of the place asked for
};

// `run_id` may be "". fd < 0 where no place was writable.
OutputFile CreateOutputFile(const char* pattern, const char* run_id);

// Replaces %h %p %r %l %j %q{VAR} %% in `pattern`; "" for what is not known (rank, local rank and job
// as session/launcher.h has them). False when it does not fit.
bool ExpandPattern(const char* pattern, char* path, size_t size);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_OUTPUT_FILE_H_
