// preload/lifecycle/output_file.h
//
// Names and creates the recording file. This library does it, in the target's working directory and
// with its rights, so that the message on stderr names a file that exists and no two processes get
// the same name.
//
//   the pattern's name                    gpumemtrace.%h.%p.gmt
//   if taken by the same run              run.PID.gmt   (the file has this run id, or is still
//                                         being written)
//   if taken by an earlier run            run.1.gmt, run.2.gmt, ...
//   if the directory does not exist       it is created, below one that does
//   if the directory is not writable      the same name in $XDG_STATE_HOME/gpumemtrace

#ifndef GMT_PRELOAD_LIFECYCLE_OUTPUT_FILE_H_
#define GMT_PRELOAD_LIFECYCLE_OUTPUT_FILE_H_

#include <limits.h>
#include <stddef.h>

namespace gmt::preload {

struct OutputFile {
  int fd = -1;  // created empty, locked with flock, close-on-exec; the caller closes it
  char path[PATH_MAX + 256] = {};  // absolute
  bool moved = false;              // the requested place was not writable
  int error = 0;                   // errno of the requested place
};

// `run_id` may be "". fd < 0 if no place was writable.
OutputFile CreateOutputFile(const char* pattern, const char* run_id);

// Replaces %h %p %r %l %j %q{VAR} %% in `pattern`. Unknown values become "" (rank, local rank and
// job come from session/launcher.h). Returns false if the result does not fit.
bool ExpandPattern(const char* pattern, char* path, size_t size);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_OUTPUT_FILE_H_
