// collector/arguments.h
//
// The collector's command line. Without arguments the collector uses the descriptors that it
// inherited from the preloaded library.
//
// Thread safety: plain values.

#ifndef GMT_COLLECTOR_ARGUMENTS_H_
#define GMT_COLLECTOR_ARGUMENTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "session/layout.h"

namespace gmt::collector {

struct Arguments {
  std::string session;  // the session's file; empty: inherited
  int session_fd = -1;  // inherited; refers to `session`, checked by the parent; -1: none
  std::string output;   // the recording to create; empty: inherited
  int output_fd = -1;   // inherited; refers to `output`, created and locked by the parent; -1: none
  int target_fd = -1;   // inherited; pidfd of the traced process; -1: use the session's pid
  std::string listen;   // address of the HTTP server; empty: as in the session's options
  bool once = false;    // record what is there now; do not wait for a living process to end
};

struct Descriptors {
  int session = session::kSessionFd;
  int target = session::kTargetPidFd;
  int output = session::kOutputFd;
};

// Parses --session FILE, --output FILE, --listen ADDRESS, --once and --session-fd, --output-fd,
// --target-fd N. Returns INVALID_ARGUMENT for anything else, and if only one of --session and
// --output is given.
absl::StatusOr<Arguments> ParseArguments(int argc, const char* const* argv);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_ARGUMENTS_H_
