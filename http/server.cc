#include "http/server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace gmt::http {
namespace {

// Returns a buffer of these bytes without copying them.
EventOwned<evbuffer> BufferOf(std::string bytes) {
  EventOwned<evbuffer> buffer(evbuffer_new());
  auto* kept = new std::string(std::move(bytes));
  evbuffer_add_reference(
      buffer.get(), kept->data(), kept->size(),
      [](const void*, size_t, void* owner) { delete static_cast<std::string*>(owner); }, kept);
  return buffer;
}

std::vector<std::pair<std::string, std::string>> HeadersOf(evhttp_request* from) {
  std::vector<std::pair<std::string, std::string>> headers;
  const evkeyvalq* sent = evhttp_request_get_input_headers(from);
  for (const evkeyval* header = sent->tqh_first; header != nullptr; header = header->next.tqe_next)
    headers.emplace_back(absl::AsciiStrToLower(header->key), header->value);
  return headers;
}

void AddHeaders(Response& response, evhttp_request* to) {
  AddProtection(response);
  evkeyvalq* headers = evhttp_request_get_output_headers(to);
  evhttp_add_header(headers, "Content-Type", response.type.c_str());
  for (const auto& [name, value] : response.headers)
    evhttp_add_header(headers, name.c_str(), value.c_str());
}

absl::Status CannotListen(const std::string& where) {
  return absl::UnavailableError(
      absl::StrCat(where, " cannot be used to listen: ", std::strerror(errno)));
}

}  // namespace

std::string AddressText(const std::string& host, uint16_t port) {
  const bool is_six = host.find(':') != std::string::npos;
  return absl::StrCat(is_six ? "[" : "", host, is_six ? "]:" : ":", port);
}

Server::Server(event_base* loop, Handler* handler, const Limits& limits)
    : loop_(loop), handler_(*handler), limits_(limits), http_(evhttp_new(loop)) {
  evhttp_set_allowed_methods(http_.get(), EVHTTP_REQ_GET);
  evhttp_set_max_headers_size(http_.get(), static_cast<ssize_t>(limits_.max_head_bytes));
  evhttp_set_max_body_size(http_.get(), 0);
  evhttp_set_default_content_type(http_.get(), nullptr);
  const timeval silence = TimeOf(limits_.silence);
  evhttp_set_timeout_tv(http_.get(), &silence);
  evhttp_set_gencb(
      http_.get(),
      [](evhttp_request* from, void* self) { static_cast<Server*>(self)->OnRequest(from); }, this);
  evhttp_set_bevcb(
      http_.get(),
      [](event_base* base, void* self) {
        const Server& server = *static_cast<Server*>(self);
        if (!server.HasRoom()) evconnlistener_disable(server.listener_);
        return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
      },
      this);
}

Server::~Server() {
  for (auto& [id, waiting] : waiting_)
    evhttp_connection_set_closecb(waiting.connection, nullptr, nullptr);
  waiting_.clear();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Listen(event_base* loop, const std::string& host,
                                                       uint16_t port, Handler* handler,
                                                       const Limits& limits) {
  std::unique_ptr<Server> server(new Server(loop, handler, limits));
  evhttp_bound_socket* bound =
      evhttp_bind_socket_with_handle(server->http_.get(), host.c_str(), port);
  if (bound == nullptr) return CannotListen(AddressText(host, port));
  if (absl::Status status = server->Take(bound); !status.ok()) return status;
  return server;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Accept(event_base* loop, int listening,
                                                       Handler* handler, const Limits& limits) {
  std::unique_ptr<Server> server(new Server(loop, handler, limits));
  evhttp_bound_socket* bound = evhttp_accept_socket_with_handle(server->http_.get(), listening);
  if (bound == nullptr) {
    close(listening);
    return CannotListen("the socket");
  }
  if (absl::Status status = server->Take(bound); !status.ok()) return status;
  return server;
}

absl::Status Server::Take(evhttp_bound_socket* bound) {
  listener_ = evhttp_bound_socket_get_listener(bound);
  evconnlistener_set_error_cb(
      listener_, [](evconnlistener* listener, void*) { evconnlistener_disable(listener); });
  const int fd = evhttp_bound_socket_get_fd(bound);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return CannotListen("the socket");
  if (address.ss_family == AF_INET)
    port_ = ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  if (address.ss_family == AF_INET6)
    port_ = ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  return absl::OkStatus();
}

// Returns whether a descriptor below the limit is free: the kernel assigns the lowest one.
bool Server::HasRoom() const {
  if (limits_.max_descriptors == INT_MAX) return true;
  const int probe = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  const int next = probe >= 0 ? probe : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (next >= 0) close(next);
  return next >= 0 && next < limits_.max_descriptors;
}

void Server::Tick() {
  if (HasRoom()) evconnlistener_enable(listener_);
}

void Server::OnRequest(evhttp_request* from) {
  const uint64_t id = next_id_++;
  Waiting& waiting = waiting_[id];
  waiting.server = this;
  waiting.id = id;
  waiting.connection = evhttp_request_get_connection(from);
  waiting.request = from;
  evhttp_connection_set_closecb(
      waiting.connection,
      [](evhttp_connection*, void* of) {
        const Waiting* freed = static_cast<Waiting*>(of);
        freed->server->OnFreed(freed->id);
      },
      &waiting);
  Request request;
  request.headers = HeadersOf(from);
  if (!ReadTarget(evhttp_request_get_uri(from), request)) {
    Response refusal = TextResponse(400, "malformed request");
    refusal.headers.emplace_back("Connection", "close");
    return Reply(id, std::move(refusal));
  }
  if (waiting_.size() > limits_.max_waiting)
    return Reply(id, TextResponse(503, "too many requests at once"));
  handler_.OnRequest(id, std::move(request));
  if (const auto found = waiting_.find(id); found != waiting_.end())
    Watch(found->second, EV_READ | EV_CLOSED);
}

// While a request waits, libevent does not read from its connection, so disconnection is watched
// here. A connection reset is reported as readable, and in no other way.
void Server::Watch(Waiting& waiting, short what) {
  const int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(waiting.connection));
  waiting.left.reset(event_new(
      loop_, fd, what,
      [](int, short seen, void* of) {
        Waiting& watched = *static_cast<Waiting*>(of);
        watched.server->OnSeen(watched, (seen & EV_CLOSED) != 0);
      },
      &waiting));
  event_add(waiting.left.get(), nullptr);
}

void Server::OnSeen(Waiting& waiting, bool is_closed) {
  char first = 0;
  const int fd = event_get_fd(waiting.left.get());
  const bool has_more = !is_closed && recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  if (!has_more) return evhttp_connection_free(waiting.connection);
  // The next request, sent before this one is answered; evhttp reads it afterwards.
  Watch(waiting, EV_CLOSED);
}

void Server::OnFreed(uint64_t id) {
  const auto found = waiting_.find(id);
  evhttp_request* request = found->second.request;
  // A failing connection detaches its request, which is then ours to free; otherwise evhttp frees
  // it.
  if (evhttp_request_get_connection(request) == nullptr) evhttp_request_free(request);
  waiting_.erase(found);
  handler_.OnDisconnect(id);
}

void Server::Reply(uint64_t id, Response response) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  evhttp_request* request = found->second.request;
  AddHeaders(response, request);
  const EventOwned<evbuffer> body = BufferOf(std::move(response.body));
  // The reason phrases (null) are libevent's.
  if (response.is_stream) {
    evhttp_send_reply_start(request, response.status, nullptr);
    evhttp_send_reply_chunk(request, body.get());
    return;
  }
  evhttp_connection_set_closecb(found->second.connection, nullptr, nullptr);
  waiting_.erase(found);
  evhttp_send_reply(request, response.status, nullptr, body.get());
}

void Server::SendToStream(uint64_t id, std::string bytes) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  evhttp_connection* connection = found->second.connection;
  evbuffer* unsent = bufferevent_get_output(evhttp_connection_get_bufferevent(connection));
  if (evbuffer_get_length(unsent) > limits_.max_stream_backlog)
    return evhttp_connection_free(connection);
  evhttp_send_reply_chunk(found->second.request, BufferOf(std::move(bytes)).get());
}

}  // namespace gmt::http
