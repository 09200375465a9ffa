// cli/top/top_feed.h
//
// TopFeed: receives the answers of one process's collector on its own thread, so that a slow
// collector does not block the others.
//
// Thread safety: all functions from any thread.

#ifndef GMT_CLI_TOP_TOP_FEED_H_
#define GMT_CLI_TOP_TOP_FEED_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "proto/control.pb.h"

namespace gmt::cli {

class TopFeed {
 public:
  static constexpr uint32_t kRows = 256;

  TopFeed(std::string session, uint32_t interval_ms, control::TopOrder order);
  ~TopFeed();
  TopFeed(const TopFeed&) = delete;
  TopFeed& operator=(const TopFeed&) = delete;

  // Returns the latest answer, or nullopt if there is none newer than the last one returned.
  std::optional<control::Top> Take();
  // Returns why no answers come, for the user; "" while they come.
  std::string trouble() const;
  // Returns whether none will come, because the recording has ended or cannot be followed.
  bool has_ended() const { return has_ended_; }
  void SetOrder(control::TopOrder order) { order_ = order; }

 private:
  void Follow();
  void SetTrouble(const std::string& why);
  void End(const std::string& why);

  const std::string session_;
  const uint32_t interval_ms_;
  std::atomic<control::TopOrder> order_;
  std::atomic<bool> stop_{false}, has_ended_{false};
  mutable std::mutex mutex_;
  std::optional<control::Top> last_;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_TOP_FEED_H_
