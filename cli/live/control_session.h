// cli/live/control_session.h
//
// Connects to the running collector that a verb sends a request to. `name` is as in `gpumemtrace
// collect`: a PID, a session's path or its name.
//
// Thread safety: free functions.

#ifndef GMT_CLI_LIVE_CONTROL_SESSION_H_
#define GMT_CLI_LIVE_CONTROL_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collector/control/client.h"
#include "collector/sessions/session_summary.h"

namespace gmt::cli {

struct ControlledSession {
  collector::SessionSummary session;
  std::unique_ptr<control::Client> client;
};

// Fails with advice if no collector records that process, if its collector is gone, or if it
// belongs to another user.
absl::StatusOr<ControlledSession> ConnectToCollector(const std::string& name);

}  // namespace gmt::cli

#endif  // GMT_CLI_LIVE_CONTROL_SESSION_H_
