// cli/record/collect_session.h
//
// Which session `gpumemtrace collect` is asked for, whether it can be collected, by which
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

// `name` is a path, the file name of a session in one of the directories that sessions live in, or
// the pid of its process.
absl::StatusOr<collector::SessionSummary> FindSession(const std::string& name);

// Whether a collector may be started on it, and if not why, and what to do. `once`: without waiting
// for the end of its process; `elsewhere`: another recording than the one its process announced.
struct CollectWish {
  bool once = false;
  bool elsewhere = false;
};
absl::Status CheckCollectable(const collector::SessionSummary& session, const CollectWish& wish);

// The collector that can read it: this release's, or the one of the release that made it.
absl::StatusOr<std::string> CollectorFor(const collector::SessionSummary& session);

// The recording that its process announced, or the first free name beside it (run.1.gmt): what the
// collector that died has written is kept.
absl::StatusOr<std::string> FreeOutput(const collector::SessionSummary& session);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_COLLECT_SESSION_H_
