// cli/install.h
//
// Finds the parts of gpumemtrace relative to the running program, in a build tree, in the unpacked
// bundle and in a system-wide installation.
//
// Thread safety: may be called from any thread.

#ifndef GMT_CLI_INSTALL_H_
#define GMT_CLI_INSTALL_H_

#include <string>

#include "absl/status/statusor.h"

namespace gmt::cli {

// Returns the absolute path of libgpumemtrace.so. If $GPUMEMTRACE_LIBRARY is set, only that path is
// tried. Otherwise ../lib, ../lib/x86_64-linux-gnu and ../lib/gpumemtrace relative to the program's
// directory, then that directory.
absl::StatusOr<std::string> PreloadLibrary();

// Returns the path of gpumemtrace-collector as the preloaded library would find it:
// $GPUMEMTRACE_COLLECTOR, otherwise next to the library, in ../bin, ../../bin and
// ../libexec.
absl::StatusOr<std::string> CollectorProgram();

}  // namespace gmt::cli

#endif  // GMT_CLI_INSTALL_H_
