// cli/record/attach_check.h
//
// `gpumemtrace attach --check PID`: every reason why a process could not be attached to, whether it holds,
// and what mends it.
//
// Thread safety: free functions.

#ifndef GMT_CLI_RECORD_ATTACH_CHECK_H_
#define GMT_CLI_RECORD_ATTACH_CHECK_H_

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace gmt::cli {

// Prints them. kDone where it can be attached to, else kFailed.
absl::StatusOr<int> CheckAttach(pid_t pid, bool json);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_ATTACH_CHECK_H_
