#include "collector/control/server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collector/control/framing.h"
#include "collector/control/request.h"
#include "collector/mailbox/copy_waiters.h"
#include "collector/mailbox/site_summary.h"
#include "collector/metrics/metrics_server.h"
#include "collector/sessions/socket_path.h"
#include "collector/sessions/unix_socket.h"
#include "http/event_loop.h"

namespace gmt::control {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr size_t kMaxUnread = 1 << 20;  // unread reply bytes; above, no requests are read
constexpr size_t kMaxWaiting = 64;      // status requests of one client
constexpr int kBacklog = 64;

uint64_t Nanoseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(time.tv_usec) * 1'000;
}

// Adds what is known without the draining thread.
void AddOwnUse(Status* status) {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  status->set_collector_cpu_ns(Nanoseconds(usage.ru_utime) + Nanoseconds(usage.ru_stime));
  uint64_t pages = 0, resident = 0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident)
    status->set_collector_rss_bytes(resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

class ThreadedServer;

struct Connection {
  ThreadedServer* server = nullptr;
  uint64_t id = 0;
  http::EventOwned<bufferevent> buffer;
  FrameReader reader{kMaxRequestBytes};
  std::vector<uint64_t> asked;  // status requests that wait for a copy
  std::optional<Request> subscription;
  http::EventOwned<event> tick;
  CopyWaiters::Clock::time_point heard = CopyWaiters::Clock::now();
  bool update_pending = false;  // the next update of the subscription waits for a copy
  bool is_closing = false;      // closed after the remaining replies are written
};

class ThreadedServer final : public Server {
 public:
  ThreadedServer(const ServerOptions& options, Mailbox* mailbox)
      : options_(options), mailbox_(*mailbox), waiters_(mailbox) {}
  ~ThreadedServer() override;

  absl::Status Open();
  void RemoveName() override;
  std::string listening() const override { return listening_; }
  std::string listen_problem() const override { return listen_problem_; }

 private:
  void OpenHttp();
  absl::Status Listen();
  void Serve();
  void OnWake();
  void OnTick();
  void OnAccept(int fd);
  void OnRead(Connection* connection);
  void OnUpdateDue(uint64_t id);
  void Answer(Connection* connection, const std::string& message);
  void QueueStatusRequest(Connection* connection, uint64_t request);
  void SendStatus(uint64_t id, const std::shared_ptr<const Copy>& copy);
  void SendUpdate(uint64_t id, const std::shared_ptr<const Copy>& copy);
  void Subscribe(Connection* connection, Request request);
  void Send(Connection* connection, const google::protobuf::MessageLite& message);
  void SendError(Connection* connection, uint64_t request, const std::string& error);
  void Close(uint64_t id) { connections_.erase(id); }
  void MakeRoom();
  Connection* Find(uint64_t id);
  Status Completed(const Status& status) const;

  const ServerOptions options_;
  Mailbox& mailbox_;
  int stop_fd_ = -1;
  http::EventOwned<event_base> base_;
  http::EventOwned<event> wake_, stop_, tick_;
  evconnlistener* listener_ = nullptr;
  std::string socket_;
  bool has_name_ = false;
  CopyWaiters waiters_;
  SiteSummary sites_;
  std::map<uint64_t, Connection> connections_;
  uint64_t next_id_ = 1;
  std::unique_ptr<metrics::MetricsServer> http_;
  std::string listening_, listen_problem_;
  std::thread thread_;
};

absl::Status ThreadedServer::Open() {
  base_ = http::MakeEventLoop();
  stop_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (base_ == nullptr || stop_fd_ < 0 || mailbox_.wake_fd() < 0)
    return absl::UnavailableError("cannot create an event loop");
  wake_.reset(event_new(
      base_.get(), mailbox_.wake_fd(), EV_READ | EV_PERSIST,
      [](int, short, void* self) { static_cast<ThreadedServer*>(self)->OnWake(); }, this));
  stop_.reset(event_new(
      base_.get(), stop_fd_, EV_READ,
      [](int, short, void* self) {
        event_base_loopbreak(static_cast<ThreadedServer*>(self)->base_.get());
      },
      this));
  tick_.reset(event_new(
      base_.get(), -1, EV_PERSIST,
      [](int, short, void* self) { static_cast<ThreadedServer*>(self)->OnTick(); }, this));
  const timeval every = http::TimeOf(kTick);
  if (event_add(wake_.get(), nullptr) != 0 || event_add(stop_.get(), nullptr) != 0 ||
      event_add(tick_.get(), &every) != 0) {
    return absl::UnavailableError("cannot create an event loop");
  }
  if (absl::Status status = Listen(); !status.ok()) return status;
  OpenHttp();
  // Signals must reach the draining thread: if this thread took one, it would not end that sleep.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return absl::OkStatus();
}

// A failure to open the HTTP server does not prevent the recording.
void ThreadedServer::OpenHttp() {
  if (options_.listen.empty()) return;
  auto address = metrics::ParseListenAddress(options_.listen, options_.identity.local_rank);
  absl::Status status = address.status();
  if (status.ok()) {
    http_ = std::make_unique<metrics::MetricsServer>(
        metrics::MetricsServer::Dependencies{
            base_.get(), &waiters_, &sites_,
            [this](const Status& known) { return Completed(known); }},
        options_.identity);
    status = http_->Open(*address);
  }
  if (status.ok()) {
    listening_ = http_->Url();
  } else {
    http_.reset();
    listen_problem_ = std::string(status.message());
  }
}

absl::Status ThreadedServer::Listen() {
  if (options_.session.empty()) return absl::OkStatus();
  socket_ = SocketPathOf(options_.session);
  if (socket_.empty()) return absl::OkStatus();
  absl::StatusOr<int> fd = ListenAt(socket_, kBacklog);
  if (!fd.ok()) return fd.status();
  has_name_ = true;
  listener_ = evconnlistener_new(
      base_.get(),
      [](evconnlistener*, evutil_socket_t accepted, sockaddr*, int, void* self) {
        static_cast<ThreadedServer*>(self)->OnAccept(accepted);
      },
      this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, *fd);
  if (listener_ == nullptr) {
    close(*fd);
    return absl::UnavailableError("cannot create an event loop");
  }
  // If no descriptor is free, new clients wait in the kernel's queue until the next tick.
  evconnlistener_set_error_cb(
      listener_, [](evconnlistener* listener, void*) { evconnlistener_disable(listener); });
  return absl::OkStatus();
}

ThreadedServer::~ThreadedServer() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!write(stop_fd_, &one, sizeof one);
    thread_.join();
  }
  RemoveName();
  if (listener_ != nullptr) evconnlistener_free(listener_);
  connections_.clear();
  http_.reset();
  if (stop_fd_ >= 0) close(stop_fd_);
}

void ThreadedServer::RemoveName() {
  if (std::exchange(has_name_, false)) RemoveSocket(socket_);
}

void ThreadedServer::Serve() {
  pthread_setname_np(pthread_self(), "gmt-control");
  event_base_dispatch(base_.get());
  OnWake();  // the last answers
  for (auto& [id, connection] : connections_) {
    const int fd = bufferevent_getfd(connection.buffer.get());
    evbuffer_unfreeze(bufferevent_get_output(connection.buffer.get()), 1);
    evbuffer_write(bufferevent_get_output(connection.buffer.get()), fd);
  }
}

Connection* ThreadedServer::Find(uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

void ThreadedServer::OnWake() {
  uint64_t count;
  (void)!read(mailbox_.wake_fd(), &count, sizeof count);
  for (NameChunk& chunk : mailbox_.TakeNames()) sites_.AddNames(std::move(chunk));
  if (std::shared_ptr<const Copy> copy = mailbox_.TakeCopy(); copy != nullptr) {
    sites_.Take(copy);
    waiters_.Take(std::move(copy));
  }
  for (const Mailbox::QueuedReply& answered : mailbox_.TakeAnswers()) {
    if (Connection* connection = Find(answered.client)) Send(connection, answered.reply);
  }
}

void ThreadedServer::OnTick() {
  if (listener_ != nullptr) evconnlistener_enable(listener_);
  if (http_ != nullptr) http_->Tick();
  waiters_.GiveUpOn(CopyWaiters::Clock::now());
}

void ThreadedServer::OnAccept(int fd) {
  const uid_t peer = PeerOf(fd);
  if (peer != geteuid() && peer != 0) {
    Reply reply;
    reply.set_error("this collector belongs to another user");
    const std::string frame = Framed(reply.SerializeAsString());
    (void)!send(fd, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
    return;
  }
  MakeRoom();
  const uint64_t id = next_id_++;
  Connection& connection = connections_[id];
  connection.server = this;
  connection.id = id;
  connection.buffer.reset(bufferevent_socket_new(base_.get(), fd, BEV_OPT_CLOSE_ON_FREE));
  if (connection.buffer == nullptr) {
    close(fd);
    return Close(id);
  }
  bufferevent_setcb(
      connection.buffer.get(),
      [](bufferevent*, void* of) {
        Connection* read = static_cast<Connection*>(of);
        read->server->OnRead(read);
      },
      [](bufferevent*, void* of) {  // all output is written
        Connection* written = static_cast<Connection*>(of);
        if (written->is_closing) return written->server->Close(written->id);
        bufferevent_enable(written->buffer.get(), EV_READ);
        written->server->OnRead(written);
      },
      [](bufferevent*, short, void* of) {
        const Connection* ended = static_cast<Connection*>(of);
        ended->server->Close(ended->id);
      },
      &connection);
  const timeval silence = http::TimeOf(options_.silence);
  bufferevent_set_timeouts(connection.buffer.get(), nullptr, &silence);
  bufferevent_setwatermark(connection.buffer.get(), EV_READ, 0, kMaxRequestBytes + kLengthBytes);
  bufferevent_enable(connection.buffer.get(), EV_READ | EV_WRITE);
  Send(&connection, options_.hello);
}

void ThreadedServer::MakeRoom() {
  while (connections_.size() >= options_.max_clients) {
    auto quietest = connections_.begin();
    for (auto it = connections_.begin(); it != connections_.end(); ++it) {
      const auto rank = [](const Connection& c) {
        return std::pair(c.subscription.has_value(), c.heard);
      };
      if (rank(it->second) < rank(quietest->second)) quietest = it;
    }
    connections_.erase(quietest);
  }
}

void ThreadedServer::OnRead(Connection* connection) {
  evbuffer* input = bufferevent_get_input(connection->buffer.get());
  std::string bytes(evbuffer_get_length(input), '\0');
  evbuffer_remove(input, bytes.data(), bytes.size());
  connection->reader.Feed(bytes);
  const uint64_t id = connection->id;
  std::string message;
  while (connection != nullptr && !connection->is_closing) {
    // The remaining requests wait in the client's own buffers.
    if (evbuffer_get_length(bufferevent_get_output(connection->buffer.get())) > kMaxUnread) {
      bufferevent_disable(connection->buffer.get(), EV_READ);
      return;
    }
    if (!connection->reader.Next(&message)) break;
    connection->heard = CopyWaiters::Clock::now();
    Answer(connection, message);
    connection = Find(id);
  }
  if (connection != nullptr && connection->reader.broken() && !connection->is_closing) {
    connection->is_closing = true;
    SendError(connection, 0, "a request is longer than 64 KiB");
  }
}

void ThreadedServer::Answer(Connection* connection, const std::string& message) {
  uint64_t request_id = 0;
  bool other_version = false;
  absl::StatusOr<Request> request = ParseRequest(message, &request_id, &other_version);
  if (!request.ok()) {
    connection->is_closing = other_version;
    return SendError(connection, request_id, std::string(request.status().message()));
  }
  switch (request->what_case()) {
    case Request::kStatus:
      return QueueStatusRequest(connection, request_id);
    case Request::kSubscribe:
      return Subscribe(connection, *std::move(request));
    default:
      if (std::string error = mailbox_.Ask(connection->id, *std::move(request)); !error.empty())
        SendError(connection, request_id, error);
  }
}

// All status requests of a client that arrive before the copy share one waiter, so that a client
// that leaves does not leave more than one behind.
void ThreadedServer::QueueStatusRequest(Connection* connection, uint64_t request) {
  if (connection->asked.size() >= kMaxWaiting)
    return SendError(connection, request, Mailbox::kTooMany);
  connection->asked.push_back(request);
  if (connection->asked.size() > 1) return;
  waiters_.Add(Mailbox::kStatus,
               [this, id = connection->id](const std::shared_ptr<const Copy>& copy) {
                 SendStatus(id, copy);
               });
}

void ThreadedServer::SendStatus(uint64_t id, const std::shared_ptr<const Copy>& copy) {
  Connection* connection = Find(id);
  if (connection == nullptr) return;
  Reply reply;
  if (copy != nullptr) *reply.mutable_status() = Completed(copy->status);
  for (const uint64_t request : std::exchange(connection->asked, {})) {
    reply.set_id(request);
    if (copy != nullptr) {
      Send(connection, reply);
    } else {
      SendError(connection, request, "the collector is busy; ask again");
    }
  }
}

Status ThreadedServer::Completed(const Status& status) const {
  Status completed = status;
  AddOwnUse(&completed);
  completed.set_clients(connections_.size());
  completed.set_listening(listening_);
  completed.set_listen_problem(listen_problem_);
  return completed;
}

void ThreadedServer::Subscribe(Connection* connection, Request request) {
  const uint64_t id = connection->id;
  const timeval every = http::TimeOf(std::chrono::milliseconds(request.subscribe().interval_ms()));
  connection->subscription = std::move(request);
  connection->tick.reset(event_new(
      base_.get(), -1, EV_PERSIST,
      [](int, short, void* of) {
        const Connection* turn = static_cast<Connection*>(of);
        turn->server->OnUpdateDue(turn->id);
      },
      connection));
  event_add(connection->tick.get(), &every);
  OnUpdateDue(id);
}

// Skips this update if the client has not read the previous one.
void ThreadedServer::OnUpdateDue(uint64_t id) {
  Connection* connection = Find(id);
  if (connection == nullptr || connection->update_pending) return;
  if (evbuffer_get_length(bufferevent_get_output(connection->buffer.get())) > 0) return;
  connection->update_pending = true;
  const auto what = connection->subscription->subscribe().what();
  const uint32_t needs = what == Subscribe::TOP         ? Mailbox::kSites
                         : what == Subscribe::LEAKS     ? Mailbox::kLeaks
                         : what == Subscribe::RECORDING ? Mailbox::kWritten
                                                        : Mailbox::kStatus;
  waiters_.Add(needs,
               [this, id](const std::shared_ptr<const Copy>& copy) { SendUpdate(id, copy); });
}

void ThreadedServer::SendUpdate(uint64_t id, const std::shared_ptr<const Copy>& copy) {
  Connection* connection = Find(id);
  if (connection == nullptr || !connection->subscription.has_value()) return;
  connection->update_pending = false;
  const Request& subscription = *connection->subscription;
  if (copy == nullptr) return SendError(connection, subscription.id(), "the collector is busy");
  // The client may have changed its subscription after this copy was requested.
  const auto what = subscription.subscribe().what();
  if ((what == Subscribe::TOP && !copy->sites) || (what == Subscribe::LEAKS && !copy->leaks) ||
      (what == Subscribe::RECORDING && !copy->written)) {
    return OnUpdateDue(id);
  }
  Reply reply;
  reply.set_id(subscription.id());
  switch (what) {
    case Subscribe::TOP:
      *reply.mutable_top() = sites_.MakeTop(subscription.subscribe());
      *reply.mutable_top()->mutable_status() = Completed(reply.top().status());
      break;
    case Subscribe::LEAKS:
      *reply.mutable_leaks() = *copy->leaks;
      break;
    default:
      *reply.mutable_status() = Completed(copy->status);
  }
  Send(connection, reply);
}

void ThreadedServer::SendError(Connection* connection, uint64_t request, const std::string& error) {
  Reply reply;
  reply.set_id(request);
  reply.set_error(error);
  reply.set_version(kVersion);
  Send(connection, reply);
}

void ThreadedServer::Send(Connection* connection, const google::protobuf::MessageLite& message) {
  const std::string frame = Framed(message.SerializeAsString());
  bufferevent_write(connection->buffer.get(), frame.data(), frame.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      Mailbox* mailbox) {
  auto server = std::make_unique<ThreadedServer>(options, mailbox);
  if (absl::Status status = server->Open(); !status.ok()) return status;
  return server;
}

}  // namespace gmt::control
