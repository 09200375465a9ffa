// cli/install.h
//
// Where the parts of gpumemtrace lie relative to the running program, in a build tree, in the
// unpacked bundle and in a system-wide installation alike.
//
// Thread safety: may be called from any thread.

#ifndef GMT_CLI_INSTALL_H_
#define GMT_CLI_INSTALL_H_

#include <string>

#include "absl/status/statusor.h"

namespace gmt::cli {

// Absolute path of libgpumemtrace.so. $GPUMEMTRACE_LIBRARY, where it is set, is the only place
// looked at; else ../lib and
// ../lib/gpumemtrace beside the program's own folder, then that folder.
absl::StatusOr<std::string> PreloadLibrary();

// Path of gpumemtrace-collector, where the preloaded library looks for it: $GPUMEMTRACE_COLLECTOR,
// else beside the library, in ../bin and in ../libexec.
absl::StatusOr<std::string> CollectorProgram();

}  // namespace gmt::cli

#endif  // GMT_CLI_INSTALL_H_
