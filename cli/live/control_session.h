// cli/live/control_session.h
//
// Connects to the running collector that a verb sends a request to. `name` is as in `gpumemtrace
// collect`: a PID, a session's path or its name.
//
// Thread safety: free functions.

#ifndef GMT_CLI_LIVE_CONTROL_SESSION_H_
#define GMT_CLI_LIVE_CONTROL_SESSION_H_

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "collector/control/client.h"
#include "collector/sessions/session_summary.h"

namespace gmt::cli {

struct ControlledSession {
  collector::SessionSummary session;
  std::unique_ptr<control::Client> client;
};

// Calls `attempt` until it succeeds, leaves its argument false, or has failed for two seconds. A
// collector that has just started may not have claimed its session yet, or may have no socket yet.
template <typename Try>
auto WhileItStarts(Try attempt) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (true) {
    bool may_start = false;
    auto result = attempt(&may_start);
    if (result.ok() || !may_start || std::chrono::steady_clock::now() >= end) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Waits a moment for a collector that starts. Fails with advice if no collector records that
// process, if its collector is gone, or if it belongs to another user.
absl::StatusOr<ControlledSession> ConnectToCollector(const std::string& name);

}  // namespace gmt::cli

#endif  // GMT_CLI_LIVE_CONTROL_SESSION_H_
