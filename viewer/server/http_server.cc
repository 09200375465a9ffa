#include "viewer/server/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "viewer/server/guard.h"
#include "viewer/server/worker_pool.h"

namespace gmt::viewer {
namespace {

// How often ShouldContinue() is called.
constexpr std::chrono::milliseconds kTick{250};

struct Freed {
  void operator()(event_base* base) const { event_base_free(base); }
  void operator()(evhttp* http) const { evhttp_free(http); }
  void operator()(event* one) const { event_free(one); }
  void operator()(evbuffer* buffer) const { evbuffer_free(buffer); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

timeval TimeOf(std::chrono::milliseconds duration) {
  return {static_cast<time_t>(duration.count() / 1000),
          static_cast<suseconds_t>(duration.count() % 1000 * 1000)};
}

// Returns a buffer of these bytes without copying them.
Owned<evbuffer> BufferOf(std::string bytes) {
  Owned<evbuffer> buffer(evbuffer_new());
  auto* kept = new std::string(std::move(bytes));
  evbuffer_add_reference(
      buffer.get(), kept->data(), kept->size(),
      [](const void*, size_t, void* owner) { delete static_cast<std::string*>(owner); }, kept);
  return buffer;
}

Request Convert(evhttp_request* from, int* status) {
  Request request;
  const evkeyvalq* headers = evhttp_request_get_input_headers(from);
  for (const evkeyval* header = headers->tqh_first; header != nullptr;
       header = header->next.tqe_next) {
    request.headers.emplace_back(absl::AsciiStrToLower(header->key), header->value);
  }
  *status = CheckRequest(evhttp_request_get_uri(from), request);
  return request;
}

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

void AddHeaders(const Response& response, evhttp_request* to) {
  evkeyvalq* headers = evhttp_request_get_output_headers(to);
  evhttp_add_header(headers, "Content-Type", response.type.c_str());
  for (const auto& [name, value] : response.headers) {
    evhttp_add_header(headers, name.c_str(), value.c_str());
  }
}

void Send(evhttp_request* to, Response response) {
  AddHeaders(response, to);
  evhttp_send_reply(to, response.status, ReasonOf(response.status),
                    BufferOf(std::move(response.body)).get());
}

class Server : public HttpServer {
 public:
  Server(RequestHandler* handler, const HttpLimits& limits)
      : handler_(*handler),
        limits_(limits),
        quick_(limits.threads_per_pool),
        slow_(limits.threads_per_pool) {}
  ~Server() override {
    http_.reset();
    if (wake_fd_ >= 0) close(wake_fd_);
  }

  absl::Status Open(uint16_t port);
  uint16_t port() const override { return port_; }
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
  // A request that awaits its answer or, for a stream, further events.
  struct PendingRequest {
    uint64_t id = 0;
    Server* server = nullptr;
    evhttp_connection* connection = nullptr;
    evhttp_request* request = nullptr;
    Owned<event> left;  // fires when the client closes its side
    std::shared_ptr<std::atomic<bool>> gone = std::make_shared<std::atomic<bool>>(false);
    bool is_stream = false;
  };
  struct Answered {
    evhttp_connection* connection;
    uint64_t id;
    Response response;
  };

  // Also called from signal handlers. If the counter is full, the thread wakes anyway.
  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
  }
  absl::Status AddEvents();
  absl::Status Bind(uint16_t port);
  void OnRequest(evhttp_request* from);
  PendingRequest& Track(evhttp_request* from);
  void Dispatch(evhttp_connection* connection, const PendingRequest& pending, Request request,
                WorkerPool& pool);
  Response Compute(const Request& request);
  void BeginStream(evhttp_request* to, Response response);
  void OnTick();
  void OnWake();
  void SendAnswers(std::vector<Answered> answers);
  void SendToAll(const std::string& event);
  void Watch(evhttp_connection* connection, PendingRequest& pending, short what);
  void OnSeen(PendingRequest& pending, bool is_closed);
  void OnFreed(evhttp_connection* connection);
  void CountStreams();

  RequestHandler& handler_;
  const HttpLimits limits_;
  std::atomic<bool> stops_ = false;
  int wake_fd_ = -1;
  uint16_t port_ = 0;

  // Used only in the serving thread. Ordered for destruction: events are freed before their base.
  Owned<event_base> base_;
  Owned<event> wake_, tick_, heartbeat_;
  std::map<evhttp_connection*, PendingRequest> pending_;
  uint64_t next_id_ = 1;
  size_t streams_ = 0;
  Owned<evhttp> http_;
  evconnlistener* listener_ = nullptr;

  std::mutex mutex_;
  std::vector<Answered> answers_;
  std::vector<std::string> events_;

  // Last, so that their threads end before the members that they write to are destroyed.
  WorkerPool quick_, slow_;
};

void Server::Serve() {
  // libevent writes to clients that have disconnected.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  if (!stops_) event_base_dispatch(base_.get());
}

absl::Status Server::Open(uint16_t port) {
  // libevent's warnings are meant for developers.
  event_set_log_callback([](int, const char*) {});
  event_config* config = event_config_new();
  event_config_require_features(config, EV_FEATURE_EARLY_CLOSE);
  base_.reset(event_base_new_with_config(config));
  event_config_free(config);
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (base_ == nullptr || wake_fd_ < 0) return SystemError("cannot create an event loop");
  if (absl::Status status = AddEvents(); !status.ok()) return status;
  return Bind(port);
}

absl::Status Server::AddEvents() {
  wake_.reset(event_new(
      base_.get(), wake_fd_, EV_READ | EV_PERSIST,
      [](int, short, void* self) { static_cast<Server*>(self)->OnWake(); }, this));
  tick_.reset(event_new(
      base_.get(), -1, EV_PERSIST,
      [](int, short, void* self) { static_cast<Server*>(self)->OnTick(); }, this));
  heartbeat_.reset(event_new(
      base_.get(), -1, EV_PERSIST,
      [](int, short, void* self) { static_cast<Server*>(self)->SendToAll(": here\n\n"); }, this));
  const timeval tick = TimeOf(kTick), beat = TimeOf(limits_.heartbeat);
  const bool added = event_add(wake_.get(), nullptr) == 0 && event_add(tick_.get(), &tick) == 0 &&
                     event_add(heartbeat_.get(), &beat) == 0;
  return added ? absl::OkStatus() : SystemError("cannot create an event loop");
}

absl::Status Server::Bind(uint16_t port) {
  http_.reset(evhttp_new(base_.get()));
  evhttp_set_allowed_methods(http_.get(), EVHTTP_REQ_GET);
  evhttp_set_max_headers_size(http_.get(), static_cast<ssize_t>(limits_.max_head_bytes));
  evhttp_set_max_body_size(http_.get(), 0);
  evhttp_set_default_content_type(http_.get(), nullptr);
  const timeval silence = TimeOf(limits_.silence);
  evhttp_set_timeout_tv(http_.get(), &silence);
  evhttp_set_gencb(
      http_.get(),
      [](evhttp_request* from, void* self) { static_cast<Server*>(self)->OnRequest(from); }, this);
  evhttp_bound_socket* bound = evhttp_bind_socket_with_handle(http_.get(), "127.0.0.1", port);
  if (bound == nullptr) return SystemError(absl::StrCat("127.0.0.1:", port, " cannot be used"));
  // If no more sockets are available, new clients wait in the kernel's queue until the next tick.
  listener_ = evhttp_bound_socket_get_listener(bound);
  evconnlistener_set_error_cb(
      listener_, [](evconnlistener* listener, void*) { evconnlistener_disable(listener); });
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  if (getsockname(evhttp_bound_socket_get_fd(bound), reinterpret_cast<sockaddr*>(&address),
                  &size) != 0) {
    return SystemError("cannot determine the port");
  }
  port_ = ntohs(address.sin_port);
  return absl::OkStatus();
}

void Server::OnTick() {
  evconnlistener_enable(listener_);
  if (!handler_.ShouldContinue()) event_base_loopbreak(base_.get());
}

void Server::OnRequest(evhttp_request* from) {
  int status = 0;
  Request request = Convert(from, &status);
  if (status != 0) {
    Response response = ErrorResponse(status, "malformed request");
    Guard::AddHeaders(response);
    response.headers.emplace_back("Connection", "close");
    return Send(from, std::move(response));
  }
  const RequestHandler::Cost cost = handler_.CostOf(request);
  if (cost == RequestHandler::Cost::kNone) {
    Response response = Compute(request);
    return response.is_stream ? BeginStream(from, std::move(response))
                              : Send(from, std::move(response));
  }
  const PendingRequest& pending = Track(from);
  Dispatch(evhttp_request_get_connection(from), pending, std::move(request),
           cost == RequestHandler::Cost::kQuick ? quick_ : slow_);
}

// While a request waits, libevent does not read from its connection, so disconnection is watched
// here.
Server::PendingRequest& Server::Track(evhttp_request* from) {
  evhttp_connection* connection = evhttp_request_get_connection(from);
  evhttp_connection_set_closecb(
      connection,
      [](evhttp_connection* freed, void* self) { static_cast<Server*>(self)->OnFreed(freed); },
      this);
  PendingRequest& pending = pending_[connection];
  pending = {};
  pending.id = next_id_++;
  pending.request = from;
  Watch(connection, pending, EV_READ | EV_CLOSED);
  return pending;
}

// A connection reset is reported as readable, and in no other way.
void Server::Watch(evhttp_connection* connection, PendingRequest& pending, short what) {
  const int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
  pending.server = this;
  pending.connection = connection;
  pending.left.reset(event_new(
      base_.get(), fd, what,
      [](int, short seen, void* of) {
        PendingRequest& watched = *static_cast<PendingRequest*>(of);
        watched.server->OnSeen(watched, (seen & EV_CLOSED) != 0);
      },
      &pending));
  event_add(pending.left.get(), nullptr);
}

void Server::OnSeen(PendingRequest& pending, bool is_closed) {
  char first = 0;
  const int fd = event_get_fd(pending.left.get());
  const bool has_more = !is_closed && recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  if (!has_more) return evhttp_connection_free(pending.connection);
  // The next request, sent before this one is answered; evhttp reads it afterwards.
  Watch(pending.connection, pending, EV_CLOSED);
}

void Server::OnFreed(evhttp_connection* connection) {
  const auto found = pending_.find(connection);
  if (found == pending_.end()) return;
  *found->second.gone = true;
  evhttp_request* request = found->second.request;
  // A failing connection detaches its request, which is then ours to free; otherwise evhttp frees
  // it.
  if (evhttp_request_get_connection(request) == nullptr) evhttp_request_free(request);
  pending_.erase(found);
  CountStreams();
}

void Server::Dispatch(evhttp_connection* connection, const PendingRequest& pending, Request request,
                      WorkerPool& pool) {
  pool.Add([this, connection, id = pending.id, gone = pending.gone, request = std::move(request)] {
    if (*gone) return;
    Response response = Compute(request);
    const std::lock_guard lock(mutex_);
    answers_.push_back({connection, id, std::move(response)});
    Wake();
  });
}

Response Server::Compute(const Request& request) {
  Response response;
  try {
    response = handler_.Answer(request);
  } catch (const std::exception& error) {
    response = ErrorResponse(500, absl::StrCat("the query failed: ", error.what()));
  }
  Guard::AddHeaders(response);
  return response;
}

void Server::OnWake() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake_fd_, &count, sizeof count);
  if (stops_) {
    event_base_loopbreak(base_.get());
    return;
  }
  std::vector<Answered> answers;
  std::vector<std::string> events;
  {
    const std::lock_guard lock(mutex_);
    answers.swap(answers_);
    events.swap(events_);
  }
  SendAnswers(std::move(answers));
  for (const std::string& event : events) SendToAll(event);
}

void Server::SendAnswers(std::vector<Answered> answers) {
  for (Answered& answered : answers) {
    const auto found = pending_.find(answered.connection);
    if (found == pending_.end() || found->second.id != answered.id) continue;
    evhttp_request* request = found->second.request;
    pending_.erase(found);
    Send(request, std::move(answered.response));
  }
}

void Server::BeginStream(evhttp_request* to, Response response) {
  Track(to).is_stream = true;
  AddHeaders(response, to);
  evhttp_send_reply_start(to, response.status, ReasonOf(response.status));
  evhttp_send_reply_chunk(to, BufferOf(std::move(response.body)).get());
  CountStreams();
}

void Server::SendToAll(const std::string& event) {
  // Freeing a connection erases it from pending_, so connections are freed after the loop.
  std::vector<evhttp_connection*> behind;
  for (const auto& [connection, pending] : pending_) {
    if (!pending.is_stream) continue;
    evbuffer* unsent = bufferevent_get_output(evhttp_connection_get_bufferevent(connection));
    if (evbuffer_get_length(unsent) > limits_.max_stream_backlog) {
      behind.push_back(connection);
    } else {
      evhttp_send_reply_chunk(pending.request, BufferOf(event).get());
    }
  }
  for (evhttp_connection* connection : behind) evhttp_connection_free(connection);
}

void Server::CountStreams() {
  const auto streams = static_cast<size_t>(std::count_if(
      pending_.begin(), pending_.end(), [](const auto& entry) { return entry.second.is_stream; }));
  if (streams != std::exchange(streams_, streams)) handler_.StreamsChanged(streams);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(uint16_t port,
                                                               RequestHandler* handler,
                                                               const HttpLimits& limits) {
  auto server = std::make_unique<Server>(handler, limits);
  if (absl::Status status = server->Open(port); !status.ok()) return status;
  return server;
}

}  // namespace gmt::viewer
