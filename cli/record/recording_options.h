// cli/record/recording_options.h
//
// RecordingOptions: the options that `run` and `attach` have in common, on the command line, and as
// the equivalent keys of GPUMEMTRACE for the preloaded library.
//
// Thread safety: values are plain.

#ifndef GMT_CLI_RECORD_RECORDING_OPTIONS_H_
#define GMT_CLI_RECORD_RECORDING_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/command.h"

namespace gmt::cli {

struct RecordingOptions {
  std::string output, stacks, heap, roles, cupti, snapshot, listen, max_size, max_time, rotate;
  bool free_stacks = false, strip_paths = false, strip_args = false;

  // Registers the options with the parser.
  void AddTo(Command& command);
  // Returns "stacks=native", ... for the options that were given, except `output`.
  std::vector<std::string> Pairs() const;
};

// Appends "key=value" to `pairs` if the value is not empty.
void AddPair(const char* key, const std::string& value, std::vector<std::string>& pairs);

// Returns the library's error about a value of GPUMEMTRACE as a usage error.
absl::Status CheckOptionText(const std::string& text);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_RECORDING_OPTIONS_H_
