// cli/top/top_feed.h
//
// TopFeed: what the collector of one process tells, again and again, on a thread of its own, so that
// one that is slow holds nobody up.
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

  // What came last; nothing where there is nothing newer than what was taken before.
  std::optional<control::Top> Take();
  // Why nothing comes any more, for a person; empty while it does.
  std::string trouble() const;
  void SetOrder(control::TopOrder order) { order_ = order; }

 private:
  void Follow();
  void End(const std::string& why);

  const std::string session_;
  const uint32_t interval_ms_;
  std::atomic<control::TopOrder> order_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::optional<control::Top> last_;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_TOP_FEED_H_
