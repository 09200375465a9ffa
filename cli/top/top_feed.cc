#include "cli/top/top_feed.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "collector/control/client.h"
#include "collector/sessions/session_search.h"

namespace gmt::cli {
namespace {

constexpr std::chrono::milliseconds kCollectorStarts{2000}, kBetweenTries{20};

bool IsRecorded(const std::string& session) {
  const auto found = collector::SummariseFile(session);
  return found.ok() && (found->state == collector::SessionState::kRecording ||
                        found->state == collector::SessionState::kUnattended);
}

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

void TopFeed::SetTrouble(const std::string& why) {
  const std::lock_guard lock(mutex_);
  trouble_ = why;
}

void TopFeed::End(const std::string& why) {
  SetTrouble(why);
  has_ended_ = true;
}

void TopFeed::Follow() {
  auto patience = kCollectorStarts;  // until the collector has its socket
  std::string ended;                 // what to say at the end; "" before the first connection
  while (!stop_) {
    auto client = control::Client::Connect(session_);
    if (!client.ok()) {
      // A collector closes the connection of a client that was stopped for long, and one that was
      // killed may be replaced.
      const bool may_return = ended.empty()
                                  ? absl::IsNotFound(client.status()) && patience.count() > 0
                                  : IsRecorded(session_);
      if (!may_return) return End(ended.empty() ? std::string(client.status().message()) : ended);
      if (!ended.empty()) SetTrouble("its collector does not answer; trying again");
      std::this_thread::sleep_for(kBetweenTries);
      patience -= kBetweenTries;
      continue;
    }
    const std::string& recording = (*client)->hello().recording();
    ended = recording.empty() ? "its recording has ended" : "ended; recording: " + recording;
    control::Subscribe request;
    request.set_what(control::Subscribe::TOP);
    request.set_interval_ms(interval_ms_);
    request.set_rows(kRows);
    request.set_order(order_);
    const absl::Status status = (*client)->Subscribe(request, [&](const control::Reply& reply) {
      const std::lock_guard lock(mutex_);
      if (reply.has_top()) last_ = reply.top();
      trouble_ = reply.error();
      return !stop_ && order_ == request.order();
    });
    if (!status.ok() && !absl::IsUnavailable(status)) return End(std::string(status.message()));
  }
}

}  // namespace gmt::cli
