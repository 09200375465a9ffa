// cli/record/recording_options.h
//
// RecordingOptions: what `run` and `attach` can be asked for alike, on the command line, and as the keys
// of GPUMEMTRACE that mean the same to the preloaded library.
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

  // Makes them known to the parser.
  void AddTo(Command& command);
  // "stacks=native", ...: of those that were given; `output` is not among them.
  std::vector<std::string> Pairs() const;
};

// "key=value" at the end of `pairs` where there is a value.
void AddPair(const char* key, const std::string& value, std::vector<std::string>& pairs);

// What the library would say about a value of GPUMEMTRACE, as a usage error.
absl::Status CheckOptionText(const std::string& text);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_RECORDING_OPTIONS_H_
