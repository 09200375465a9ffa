// cli/live/live_session.h
//
// LiveSession: what the collector of a recorded process tells a page that follows it: on a thread of
// its own it asks the collector to write all that happened, several times a second, and hands on where
// that is, and what is held now. A collector that is gone is looked for again until the process is gone
// too.
//
// Thread safety: as viewer::LiveSource.

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

// The processes that a page is to follow, by what the user named: PIDs or sessions, as control verbs
// take them. None: the only one that is being recorded. Fails with the way out where one is not being
// recorded, or where it is not clear which one is meant.
absl::StatusOr<std::vector<viewer::LiveProcess>> FindLiveProcesses(
    const std::vector<std::string>& names);

class LiveSession : public viewer::LiveSource {
 public:
  // How often the recording is written for the page.
  static constexpr uint32_t kIntervalMs = 150;

  // `client`: connected to the collector of `session`.
  LiveSession(std::string session, uint64_t pid, std::unique_ptr<control::Client> client);
  ~LiveSession() override;

  viewer::LiveNews Wait(std::chrono::milliseconds patience) override;
  void Stop() override;

 private:
  void Run();
  void Follow();
  // False: nothing will come any more.
  bool FindCollector();
  void TakeStatus(const control::Status& status);
  void Tell(viewer::LiveNews::State state, std::string words);

  const std::string session_;
  const uint64_t pid_;

  // Of the thread.
  std::unique_ptr<control::Client> client_;
  control::Subscribe::What what_ = control::Subscribe::RECORDING;
  int looked_in_vain_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  viewer::LiveNews news_;
  uint64_t told_ = 0, taken_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_LIVE_LIVE_SESSION_H_
