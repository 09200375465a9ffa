// cli/record/bring_in.h
//
// The library in a process that was started without it (collector/inject/inject.h).
//
// Thread safety: free functions, which fork: to be called while this program has one thread.

#ifndef GMT_CLI_RECORD_BRING_IN_H_
#define GMT_CLI_RECORD_BRING_IN_H_

#include <string>

#include "absl/status/statusor.h"
#include "collector/inject/target_info.h"

namespace gmt::cli {

// Brings it in and has it catch calls of the GPU; the process then has a session with a door: `session`,
// as this program sees it. Returns what the library has to say. `insist`: though the seccomp filters of
// the process cannot be read.
absl::StatusOr<std::string> BringIn(const inject::TargetInfo& target, bool insist,
                                    std::string* session);

// For who gives up before a recording has begun: calls are caught no more. What cannot be done is left: it
// costs the process a look at one word in each call.
void LetGo(const inject::TargetInfo& target);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_BRING_IN_H_
