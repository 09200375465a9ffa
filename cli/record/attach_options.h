// cli/record/attach_options.h
//
// The options of an attach, and what is derived from them: the options for the process (keys of
// GPUMEMTRACE) and the name of the recording.
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

// Registers the options with the parser.
void AddAttachOptions(Command* command, AttachOptions* options);

// Returns the equivalent value of GPUMEMTRACE, or a usage error if the library would not accept it.
absl::StatusOr<std::string> OptionText(const AttachOptions& options);

// Returns the rank of the process in its job according to its launcher's environment, or "" if
// unknown.
std::string RankOf(pid_t pid);

// Returns the absolute path that a pattern stands for (%h host, %p pid, %r rank, %l local rank, %j
// job id, %q{VAR} a variable of the process).
std::filesystem::path OutputFor(const std::string& pattern, pid_t pid);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_ATTACH_OPTIONS_H_
