// cli/window_options.h
//
// The options that select a time range: --from, --to.
//
// Thread safety: plain values.

#ifndef GMT_CLI_WINDOW_OPTIONS_H_
#define GMT_CLI_WINDOW_OPTIONS_H_

#include <cmath>

#include "absl/status/statusor.h"
#include "analysis/examination/replay.h"
#include "cli/command.h"

namespace gmt::cli {

struct WindowOptions {
  double from = -INFINITY, to = INFINITY;  // seconds since the recording began

  bool is_given() const { return from != -INFINITY || to != INFINITY; }
  void AddTo(Command& command, const std::string& from_help, const std::string& to_help);
  // Returns a UsageError if the end is before the beginning.
  absl::StatusOr<analysis::Window> Window() const;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_WINDOW_OPTIONS_H_
