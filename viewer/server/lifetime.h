// viewer/server/lifetime.h
//
// Lifetime: decides how long the server runs. It waits for the first page without a limit, and ends
// a few seconds after the last page was closed; a page that is reloaded reconnects before that.
//
// Thread safety: one thread.

#ifndef GMT_VIEWER_SERVER_LIFETIME_H_
#define GMT_VIEWER_SERVER_LIFETIME_H_

#include <chrono>
#include <cstddef>
#include <optional>

namespace gmt::viewer {

class Lifetime {
 public:
  using Clock = std::chrono::steady_clock;

  // Without a grace period, the server runs until it is stopped.
  explicit Lifetime(std::optional<std::chrono::milliseconds> grace) : grace_(grace) {}

  void PagesOpen(size_t pages, Clock::time_point now) {
    was_open_ |= pages > 0;
    closed_since_ = pages == 0 && was_open_ ? std::optional(now) : std::nullopt;
  }
  bool IsOver(Clock::time_point now) const {
    return grace_ && closed_since_ && now - *closed_since_ >= *grace_;
  }

 private:
  const std::optional<std::chrono::milliseconds> grace_;
  bool was_open_ = false;
  std::optional<Clock::time_point> closed_since_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_LIFETIME_H_
