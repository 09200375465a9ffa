// cli/record/attach_check.h
//
// `gpumemtrace attach --check PID`: every precondition of an attach, whether it holds, and how to
// satisfy it.
//
// Thread safety: free functions.

#ifndef GMT_CLI_RECORD_ATTACH_CHECK_H_
#define GMT_CLI_RECORD_ATTACH_CHECK_H_

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace gmt::cli {

// Prints the preconditions. Returns kDone if the process can be attached to, otherwise kFailed.
absl::StatusOr<int> CheckAttach(pid_t pid, bool json);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_ATTACH_CHECK_H_
