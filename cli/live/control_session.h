// cli/live/control_session.h
//
// The running collector that a verb is to ask: `name` is as `gpumemtrace collect` takes it, a pid, a
// session's path or its name.
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

// Fails with what mends it: where nothing records that process, where its collector is gone, or where
// it is another user's.
absl::StatusOr<ControlledSession> ConnectToCollector(const std::string& name);

}  // namespace gmt::cli

#endif  // GMT_CLI_LIVE_CONTROL_SESSION_H_
