// collector/arguments.h
//
// The collector's command line. Without arguments it works on the descriptors that the preloaded
// library left.
//
// Thread safety: plain values.

#ifndef GMT_COLLECTOR_ARGUMENTS_H_
#define GMT_COLLECTOR_ARGUMENTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "session/layout.h"

namespace gmt::collector {

struct Arguments {
  std::string session;  // a session's file; empty: inherited
  int session_fd = -1;  // that file, checked by who starts this program, inherited; -1: none
  std::string output;   // the recording to create; empty: inherited
  int output_fd = -1;  // that file, made and locked by who starts this program, inherited; -1: none
  int target_fd = -1;  // a pidfd of its process, inherited; -1: known by what the session says
  std::string listen;  // address for HTTP; empty: what the session's options say
  bool once = false;   // record what there is now, and do not wait for a living process's end
};

struct Descriptors {
  int session = session::kSessionFd;
  int target = session::kTargetPidFd;
  int output = session::kOutputFd;
};

// INVALID_ARGUMENT for anything but --session FILE, --output FILE, --listen ADDRESS, --once and
// --session-fd, --output-fd or --target-fd N, and for one of the files without the other.
absl::StatusOr<Arguments> ParseArguments(int argc, const char* const* argv);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_ARGUMENTS_H_
