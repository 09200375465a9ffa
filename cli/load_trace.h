// cli/load_trace.h
//
// Opens what a reading verb was given and makes a Trace of it, with every frame named that can be
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
  // What the file lacks, as sentences for a person: cut off, damaged, events lost.
  std::vector<std::string> lacks;
  // Modules whose frames have no names on this machine, likewise.
  std::vector<std::string> unnamed;
};

// What the recording that `trace` was made of could not say, as sentences for a person.
std::vector<std::string> WhatTraceLacks(const analysis::Trace& trace);

// Hears from time to time what is done, "reading events: 3,407,872", how much of the file is read, 0 to 1,
// and the rows and steps so far. From the loading thread.
using LoadListener =
    std::function<void(const std::string& what, double share, const analysis::Trace& so_far)>;

// Fails with a message that names the file and, where one exists, the command that mends it. Without
// a listener the terminal is told (progress.h).
absl::StatusOr<std::unique_ptr<LoadedTrace>> LoadTrace(const std::string& path,
                                                       const LoadListener& listener = nullptr);

// `lacks` of a trace, for an answer that has rows for what was there before an attach.
std::vector<std::string> WithoutBeforeAttach(std::vector<std::string> lacks);

}  // namespace gmt::cli

#endif  // GMT_CLI_LOAD_TRACE_H_
