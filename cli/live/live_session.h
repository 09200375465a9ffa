// cli/live/live_session.h
//
// LiveSession: follows a recorded process for a page. A thread subscribes to the process's
// collector, which writes the recording several times a second, and passes on how far it is written
// and what is held now. If the collector is gone, the thread looks for it until the process is gone
// too.
//
// Thread safety: same as viewer::LiveSource.

#ifndef GMT_CLI_LIVE_LIVE_SESSION_H_
#define GMT_CLI_LIVE_LIVE_SESSION_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "collector/control/client.h"
#include "viewer/live/live_source.h"

namespace gmt::cli {

// Returns the processes that a page is to follow. `names`: PIDs or sessions, as control verbs take
// them; if empty, the only process that is being recorded. Fails with advice if a process is not
// being recorded, or if it is ambiguous which one is meant.
absl::StatusOr<std::vector<viewer::LiveProcess>> FindLiveProcesses(
    const std::vector<std::string>& names);

class LiveSession : public viewer::LiveSource {
 public:
  // How often the collector writes the recording for the page.
  static constexpr uint32_t kIntervalMs = 150;

  // `client` is connected to the collector of `session`.
  LiveSession(std::string session, uint64_t pid, std::unique_ptr<control::Client> client);
  ~LiveSession() override;

  viewer::LiveNews Wait(std::chrono::milliseconds patience) override;
  void Stop() override;

 private:
  void Run();
  void Follow();
  // Returns false if no more data will come.
  bool FindCollector();
  void TakeStatus(const control::Status& status);
  void SetState(viewer::LiveNews::State state, std::string words);

  const std::string session_;
  const uint64_t pid_;

  // Used only by the thread.
  std::unique_ptr<control::Client> client_;
  control::Subscribe::What what_ = control::Subscribe::RECORDING;
  int failed_lookups_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  viewer::LiveNews news_;
  uint64_t published_ = 0, taken_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_LIVE_LIVE_SESSION_H_
