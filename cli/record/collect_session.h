// cli/record/collect_session.h
//
// Which session `gpumemtrace collect` is to collect, whether that is possible, with which
// collector, and into which file.
//
// Thread safety: free functions.

#ifndef GMT_CLI_RECORD_COLLECT_SESSION_H_
#define GMT_CLI_RECORD_COLLECT_SESSION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collector/sessions/session_summary.h"

namespace gmt::cli {

// Finds a session. `name` is a path, the file name of a session in one of the session directories,
// or the PID of its process.
absl::StatusOr<collector::SessionSummary> FindSession(const std::string& name);

// Returns OK if a collector may be started on the session, otherwise why not and what to do.
// `once`: without waiting for the end of its process. `elsewhere`: into another recording than the
// one that its process announced.
struct CollectRequest {
  bool once = false;
  bool elsewhere = false;
};
absl::Status CheckCollectable(const collector::SessionSummary& session,
                              const CollectRequest& request);

// Returns the collector that can read the session: this release's, or that of the release that made
// it.
absl::StatusOr<std::string> CollectorFor(const collector::SessionSummary& session);

// Returns the recording that its process announced, or the first free name next to it (run.1.gmt),
// so that the file of a collector that died is kept.
absl::StatusOr<std::string> FreeOutput(const collector::SessionSummary& session);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_COLLECT_SESSION_H_
