// cli/load_trace.h
//
// Opens the file given to a reading verb and builds a Trace from it. Names every frame that can be
// named on this machine.
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_LOAD_TRACE_H_
#define GMT_CLI_LOAD_TRACE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/trace.h"
#include "format/definitions.h"

namespace gmt::cli {

struct LoadedTrace {
  std::string path;
  analysis::Trace trace;
  format::Definitions definitions;
  // What the file lacks, as sentences for users: truncated, damaged, events lost.
  std::vector<std::string> lacks;
  // Modules whose frames have no names on this machine, as sentences for users.
  std::vector<std::string> unnamed;
};

// Returns what is missing in the recording that `trace` was built from, as sentences for users.
std::vector<std::string> WhatTraceLacks(const analysis::Trace& trace);

// Called from time to time by the loading thread with what is done, such as "reading events:
// 3,407,872", the share of the file that was read (0 to 1), and the trace so far.
using LoadListener =
    std::function<void(const std::string& what, double share, const analysis::Trace& so_far)>;

// Fails with a message that names the file and, if there is one, the command that fixes it. Without
// a listener, progress is shown on the terminal (progress.h).
absl::StatusOr<std::unique_ptr<LoadedTrace>> LoadTrace(const std::string& path,
                                                       const LoadListener& listener = nullptr);

// Returns `lacks` without the lines about memory from before an attach, for answers that have rows
// for it.
std::vector<std::string> WithoutBeforeAttach(std::vector<std::string> lacks);

}  // namespace gmt::cli

#endif  // GMT_CLI_LOAD_TRACE_H_
