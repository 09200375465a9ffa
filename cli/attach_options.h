// cli/attach_options.h
//
// What a user can ask of an attach, and what becomes of it: the text that the process gets (keys of
// GPUMEMTRACE), and the name of the recording.
//
// Thread safety: free functions; values are plain.

#ifndef GMT_CLI_ATTACH_OPTIONS_H_
#define GMT_CLI_ATTACH_OPTIONS_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"

namespace gmt::cli {

struct AttachOptions {
  std::string pid, watch, output, method = "auto";
  bool check = false, all_ranks = false, json = false;
  // As those of `run`.
  std::string stacks, heap, cupti, snapshot, listen, max_size, max_time, rotate;
  bool free_stacks = false, quiet = false;
};

// Makes them known to the parser.
void AddAttachOptions(Command* command, AttachOptions* options);

// The value of GPUMEMTRACE that means the same. A usage error where the library would not take it.
absl::StatusOr<std::string> OptionText(const AttachOptions& options);

// The first free file for a pattern (%h host, %p pid, %r rank, %l local rank, %j job id, %q{VAR} a variable of
// the process); absolute. ALREADY_EXISTS where none is free.
absl::StatusOr<std::string> OutputFor(const std::string& pattern, pid_t pid);

}  // namespace gmt::cli

#endif  // GMT_CLI_ATTACH_OPTIONS_H_
