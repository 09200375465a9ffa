// cli/record/inject_library.h
//
// Injects the library into a process that was started without it (collector/inject/inject.h).
//
// Thread safety: free functions that fork. Call them while this program has one thread.

#ifndef GMT_CLI_RECORD_INJECT_LIBRARY_H_
#define GMT_CLI_RECORD_INJECT_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"
#include "collector/inject/target_info.h"

namespace gmt::cli {

// Injects the library and makes it intercept GPU calls. The process then has a session with an
// attach gate, whose path as seen by this program is stored in *session. Returns the library's
// message, which may be empty. `insist`: proceed even if the seccomp filters of the process cannot
// be read.
absl::StatusOr<std::string> InjectLibrary(const inject::TargetInfo& target, bool insist,
                                          std::string* session);

// Makes the library stop intercepting calls. Called if an attach is given up before the recording
// has begun. Errors are ignored: calls that stay intercepted only check one word each.
void DetachLibrary(const inject::TargetInfo& target);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_INJECT_LIBRARY_H_
