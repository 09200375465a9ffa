#include "cli/top/top_feed.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "collector/control/client.h"

namespace gmt::cli {
namespace {

constexpr std::chrono::milliseconds kCollectorStarts{2000}, kBetweenTries{20};

}  // namespace

TopFeed::TopFeed(std::string session, uint32_t interval_ms, control::TopOrder order)
    : session_(std::move(session)),
      interval_ms_(interval_ms),
      order_(order),
      thread_([this] { Follow(); }) {}

TopFeed::~TopFeed() {
  stop_ = true;
  thread_.join();
}

std::optional<control::Top> TopFeed::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(last_, std::nullopt);
}

std::string TopFeed::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void TopFeed::End(const std::string& why) {
  const std::lock_guard lock(mutex_);
  trouble_ = why;
}

void TopFeed::Follow() {
  auto patience = kCollectorStarts;  // until the collector has its socket
  while (!stop_) {
    auto client = control::Client::Connect(session_);
    if (absl::IsNotFound(client.status()) && patience > std::chrono::milliseconds(0)) {
      std::this_thread::sleep_for(kBetweenTries);
      patience -= kBetweenTries;
      continue;
    }
    if (!client.ok()) return End(std::string(client.status().message()));
    patience = std::chrono::milliseconds(0);
    const std::string recording = (*client)->hello().recording();
    control::Subscribe request;
    request.set_what(control::Subscribe::TOP);
    request.set_interval_ms(interval_ms_);
    request.set_rows(kRows);
    request.set_order(order_);
    const absl::Status status = (*client)->Subscribe(request, [&](const control::Reply& reply) {
      const std::lock_guard lock(mutex_);
      if (reply.has_top()) last_ = reply.top();
      if (!reply.error().empty()) trouble_ = reply.error();
      return !stop_ && order_ == request.order();
    });
    if (absl::IsUnavailable(status)) {
      return End(recording.empty() ? "its recording has ended" : "ended; recording: " + recording);
    }
    if (!status.ok()) return End(std::string(status.message()));
  }
}

}  // namespace gmt::cli
