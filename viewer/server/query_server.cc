#include "viewer/server/query_server.h"

#include <event2/event.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "http/event_loop.h"
#include "viewer/server/error_response.h"
#include "viewer/server/worker_pool.h"

namespace gmt::viewer {
namespace {

// How often ShouldContinue() is called.
constexpr std::chrono::milliseconds kTick{250};

class PooledServer final : public QueryServer, private http::Handler {
 public:
  PooledServer(QueryHandler* handler, const QueryLimits& limits)
      : handler_(*handler),
        limits_(limits),
        quick_(limits.threads_per_pool),
        slow_(limits.threads_per_pool) {}
  ~PooledServer() override {
    if (wake_fd_ >= 0) close(wake_fd_);
  }

  absl::Status Open(uint16_t port);
  uint16_t port() const override { return http_->port(); }
  void Serve() override;
  void Stop() override {
    stops_ = true;
    Wake();
  }
  void SendToStreams(absl::string_view event) override {
    const std::lock_guard lock(mutex_);
    events_.emplace_back(event);
    Wake();
  }

 private:
  struct Computed {
    uint64_t id;
    http::Response response;
  };

  // Also called from signal handlers. If the counter is full, the thread wakes anyway.
  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
  }
  void OnRequest(uint64_t id, http::Request request) override;
  void OnDisconnect(uint64_t id) override;
  http::Response Compute(const http::Request& request);
  void OnTick();
  void OnWake();
  void SendToAll(const std::string& event);

  QueryHandler& handler_;
  const QueryLimits limits_;
  std::atomic<bool> stops_ = false;
  int wake_fd_ = -1;

  // Used only in the serving thread. Ordered for destruction: events are freed before their loop.
  http::EventOwned<event_base> loop_;
  http::EventOwned<event> wake_, tick_, heartbeat_;
  // Whether the client of a request that a pool answers has disconnected, by request.
  std::map<uint64_t, std::shared_ptr<std::atomic<bool>>> gone_;
  std::set<uint64_t> streams_;
  std::unique_ptr<http::Server> http_;

  std::mutex mutex_;
  std::vector<Computed> computed_;
  std::vector<std::string> events_;

  // Last, so that their threads end before the members that they write to are destroyed.
  WorkerPool quick_, slow_;
};

void PooledServer::Serve() {
  // libevent writes to clients that have disconnected.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  if (!stops_) event_base_dispatch(loop_.get());
}

absl::Status PooledServer::Open(uint16_t port) {
  loop_ = http::MakeEventLoop();
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (loop_ == nullptr || wake_fd_ < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot create an event loop: ", std::strerror(errno)));
  }
  wake_.reset(event_new(
      loop_.get(), wake_fd_, EV_READ | EV_PERSIST,
      [](int, short, void* self) { static_cast<PooledServer*>(self)->OnWake(); }, this));
  tick_.reset(event_new(
      loop_.get(), -1, EV_PERSIST,
      [](int, short, void* self) { static_cast<PooledServer*>(self)->OnTick(); }, this));
  heartbeat_.reset(event_new(
      loop_.get(), -1, EV_PERSIST,
      [](int, short, void* self) { static_cast<PooledServer*>(self)->SendToAll(": here\n\n"); },
      this));
  const timeval tick = http::TimeOf(kTick), beat = http::TimeOf(limits_.heartbeat);
  if (event_add(wake_.get(), nullptr) != 0 || event_add(tick_.get(), &tick) != 0 ||
      event_add(heartbeat_.get(), &beat) != 0) {
    return absl::UnavailableError("cannot create an event loop");
  }
  auto http = http::Server::Listen(loop_.get(), "127.0.0.1", port, this, limits_.http);
  if (!http.ok()) return http.status();
  http_ = *std::move(http);
  return absl::OkStatus();
}

void PooledServer::OnTick() {
  http_->Tick();
  if (!handler_.ShouldContinue()) event_base_loopbreak(loop_.get());
}

void PooledServer::OnRequest(uint64_t id, http::Request request) {
  const QueryHandler::Cost cost = handler_.CostOf(request);
  if (cost == QueryHandler::Cost::kNone) {
    http::Response response = Compute(request);
    const bool is_stream = response.is_stream;
    http_->Reply(id, std::move(response));
    if (!is_stream) return;
    streams_.insert(id);
    return handler_.StreamsChanged(streams_.size());
  }
  auto gone = std::make_shared<std::atomic<bool>>(false);
  gone_[id] = gone;
  WorkerPool& pool = cost == QueryHandler::Cost::kQuick ? quick_ : slow_;
  pool.Add([this, id, gone = std::move(gone), request = std::move(request)] {
    if (*gone) return;
    http::Response response = Compute(request);
    const std::lock_guard lock(mutex_);
    computed_.push_back({id, std::move(response)});
    Wake();
  });
}

void PooledServer::OnDisconnect(uint64_t id) {
  if (const auto found = gone_.find(id); found != gone_.end()) {
    *found->second = true;
    gone_.erase(found);
  }
  if (streams_.erase(id) != 0) handler_.StreamsChanged(streams_.size());
}

http::Response PooledServer::Compute(const http::Request& request) {
  try {
    return handler_.Answer(request);
  } catch (const std::exception& error) {
    return ErrorResponse(500, absl::StrCat("the query failed: ", error.what()));
  }
}

void PooledServer::OnWake() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake_fd_, &count, sizeof count);
  if (stops_) {
    event_base_loopbreak(loop_.get());
    return;
  }
  std::vector<Computed> computed;
  std::vector<std::string> events;
  {
    const std::lock_guard lock(mutex_);
    computed.swap(computed_);
    events.swap(events_);
  }
  for (Computed& one : computed) {
    gone_.erase(one.id);
    http_->Reply(one.id, std::move(one.response));
  }
  for (const std::string& event : events) SendToAll(event);
}

void PooledServer::SendToAll(const std::string& event) {
  // A stream that is not read ends meanwhile.
  for (const uint64_t id : std::vector(streams_.begin(), streams_.end()))
    http_->SendToStream(id, event);
}

}  // namespace

absl::StatusOr<std::unique_ptr<QueryServer>> QueryServer::Listen(uint16_t port,
                                                                 QueryHandler* handler,
                                                                 const QueryLimits& limits) {
  auto server = std::make_unique<PooledServer>(handler, limits);
  if (absl::Status status = server->Open(port); !status.ok()) return status;
  return server;
}

}  // namespace gmt::viewer
