// cli/record/attach_options.h
//
// What a user can ask of an attach, and what becomes of it: the text that the process gets (keys of
// GPUMEMTRACE), and the name of the recording.
//
// Thread safety: free functions; values are plain.

#ifndef GMT_CLI_RECORD_ATTACH_OPTIONS_H_
#define GMT_CLI_RECORD_ATTACH_OPTIONS_H_

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/record/recording_options.h"

namespace gmt::cli {

struct AttachOptions {
  std::string pid, watch, method = "auto";
  bool check = false, all_ranks = false, json = false, quiet = false;
  RecordingOptions recording;
};

// Makes them known to the parser.
void AddAttachOptions(Command* command, AttachOptions* options);

// The value of GPUMEMTRACE that means the same. A usage error where the library would not take it.
absl::StatusOr<std::string> OptionText(const AttachOptions& options);

// The process's rank among those of its job, as its launcher told it; "" where nobody did.
std::string RankOf(pid_t pid);

// The file that a pattern means (%h host, %p pid, %r rank, %l local rank, %j job id, %q{VAR} a variable of the
// process); absolute.
std::filesystem::path OutputFor(const std::string& pattern, pid_t pid);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_ATTACH_OPTIONS_H_
