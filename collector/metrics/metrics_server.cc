#include "collector/metrics/metrics_server.h"

#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "collector/control/unix_socket.h"
#include "collector/metrics/live_profile.h"

namespace gmt::metrics {
namespace {

constexpr size_t kMaxHeaderBytes = 16 << 10;
constexpr size_t kMaxWaitingRequests = 64;
constexpr int kMaxDescriptors = 256;  // with more, no connection is accepted
constexpr int kBacklog = 64;
constexpr char kPlain[] = "text/plain; charset=utf-8";

enum Code {
  kOk = 200,
  kBadRequest = 400,
  kUnauthorized = 401,
  kForbidden = 403,
  kNotFound = 404,
  kNoMethod = 405,
  kBusy = 503
};

const char* ReasonOf(int code) {
  switch (code) {
    case kOk:
      return "OK";
    case kBadRequest:
      return "Bad Request";
    case kUnauthorized:
      return "Unauthorized";
    case kForbidden:
      return "Forbidden";
    case kNotFound:
      return "Not Found";
    case kNoMethod:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

std::string HeaderOf(evhttp_request* request, const char* name) {
  const char* value = evhttp_find_header(evhttp_request_get_input_headers(request), name);
  return value == nullptr ? "" : value;
}

void Send(evhttp_request* request, int code, const std::string& type, const std::string& body) {
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", type.c_str());
  evhttp_add_header(headers, "Cache-Control", "no-store");
  evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
  if (code == kUnauthorized) evhttp_add_header(headers, "WWW-Authenticate", "Bearer");
  const control::EventOwned<evbuffer> buffer(evbuffer_new());
  evbuffer_add(buffer.get(), body.data(), body.size());
  evhttp_send_reply(request, code, ReasonOf(code), buffer.get());
}

void SendText(evhttp_request* request, int code, const std::string& text) {
  Send(request, code, kPlain, absl::StrCat(text, "\n"));
}

// The time does not depend on which characters differ.
bool Equal(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < left.size(); ++i)
    difference |= static_cast<unsigned char>(left[i] ^ right[i]);
  return difference == 0;
}

// "127.0.0.1:9400", "localhost", "[::1]:80". Other names could be made to resolve to this machine.
bool IsAddressOrLocalhost(std::string_view host) {
  if (host.substr(0, 1) == "[") return true;
  host = host.substr(0, host.find(':'));
  return host.empty() || host == "localhost" || std::all_of(host.begin(), host.end(), [](char c) {
           return (c >= '0' && c <= '9') || c == '.';
         });
}

}  // namespace

MetricsServer::~MetricsServer() {
  http_.reset();
  if (!socket_.empty()) control::RemoveSocket(socket_);
}

absl::Status MetricsServer::Open(const ListenAddress& address) {
  address_ = address;
  if (!address.token_file.empty()) {
    auto token = ReadToken(address.token_file);
    if (!token.ok()) return token.status();
    token_ = *std::move(token);
  }
  http_.reset(evhttp_new(deps_.base));
  if (http_ == nullptr) return absl::UnavailableError("cannot create an event loop");
  evhttp_set_allowed_methods(http_.get(), EVHTTP_REQ_GET);
  evhttp_set_max_headers_size(http_.get(), kMaxHeaderBytes);
  evhttp_set_max_body_size(http_.get(), 0);
  const timeval silence = control::TimeOf(kSilence);
  evhttp_set_timeout_tv(http_.get(), &silence);
  evhttp_set_gencb(
      http_.get(),
      [](evhttp_request* request, void* self) {
        static_cast<MetricsServer*>(self)->OnRequest(request);
      },
      this);
  evhttp_set_bevcb(
      http_.get(),
      [](event_base* base, void* of) {
        MetricsServer* self = static_cast<MetricsServer*>(of);
        if (!self->HasRoom()) evconnlistener_disable(self->listener_);
        return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
      },
      this);
  return Bind(address);
}

absl::Status MetricsServer::Bind(const ListenAddress& address) {
  evhttp_bound_socket* bound = nullptr;
  if (!address.unix_path.empty()) {
    absl::StatusOr<int> fd = control::ListenAt(address.unix_path, kBacklog);
    if (!fd.ok()) return fd.status();
    socket_ = address.unix_path;
    bound = evhttp_accept_socket_with_handle(http_.get(), *fd);
    if (bound == nullptr) close(*fd);
  } else {
    bound = evhttp_bind_socket_with_handle(http_.get(), address.host.c_str(), address.port);
  }
  if (bound == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(address.Text(), " cannot be used to listen: ", std::strerror(errno)));
  }
  listener_ = evhttp_bound_socket_get_listener(bound);
  evconnlistener_set_error_cb(
      listener_, [](evconnlistener* listener, void*) { evconnlistener_disable(listener); });
  sockaddr_storage taken = {};
  socklen_t size = sizeof taken;
  const int fd = evhttp_bound_socket_get_fd(bound);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (address_.port == 0 && getsockname(fd, reinterpret_cast<sockaddr*>(&taken), &size) == 0) {
    if (taken.ss_family == AF_INET)
      address_.port = ntohs(reinterpret_cast<const sockaddr_in*>(&taken)->sin_port);
    if (taken.ss_family == AF_INET6)
      address_.port = ntohs(reinterpret_cast<const sockaddr_in6*>(&taken)->sin6_port);
  }
  return absl::OkStatus();
}

std::string MetricsServer::Url() const {
  return address_.unix_path.empty() ? absl::StrCat("http://", address_.Text()) : address_.Text();
}

// Returns whether a low descriptor is free: the kernel assigns the lowest one.
bool MetricsServer::HasRoom() const {
  const int probe = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  const int next = probe >= 0 ? probe : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (next >= 0) close(next);
  return next >= 0 && next < kMaxDescriptors;
}

void MetricsServer::Tick() {
  if (HasRoom()) evconnlistener_enable(listener_);
}

int MetricsServer::RefusalCode(evhttp_request* request) const {
  if (!token_.empty()) {
    constexpr std::string_view kBearer = "Bearer ";
    const std::string given = HeaderOf(request, "Authorization");
    const bool is_it = given.compare(0, kBearer.size(), kBearer) == 0 &&
                       Equal(std::string_view(given).substr(kBearer.size()), token_);
    if (!is_it) return kUnauthorized;
  }
  if (address_.is_loopback && !IsAddressOrLocalhost(HeaderOf(request, "Host"))) return kForbidden;
  return 0;
}

void MetricsServer::OnRequest(evhttp_request* request) {
  if (const int code = RefusalCode(request); code != 0) {
    return SendText(request, code,
                    code == kUnauthorized ? "a bearer token is required"
                                          : "the host must be an address or localhost");
  }
  if (evhttp_request_get_command(request) != EVHTTP_REQ_GET)
    return SendText(request, kNoMethod, "only GET is supported");
  const evhttp_uri* uri = evhttp_request_get_evhttp_uri(request);
  const char* given = uri == nullptr ? nullptr : evhttp_uri_get_path(uri);
  const std::string_view path = given == nullptr ? "" : given;
  if (path == "/metrics") return AnswerMetrics(request);
  if (path == "/healthz") return AnswerHealth(request);
  if (path == "/debug/pprof/gpu") return AnswerProfile(request);
  SendText(request, kNotFound, "available: /metrics, /healthz and /debug/pprof/gpu");
}

// The connection may close while a request waits; libevent then frees the request.
uint64_t MetricsServer::Keep(evhttp_request* request) {
  const uint64_t id = next_id_++;
  Waiting& waiting = waiting_[id];
  waiting.server = this;
  waiting.request = request;
  evhttp_connection_set_closecb(
      evhttp_request_get_connection(request),
      [](evhttp_connection* connection, void* self) {
        static_cast<MetricsServer*>(self)->OnDisconnect(connection);
      },
      this);
  return id;
}

MetricsServer::Waiting* MetricsServer::Find(uint64_t id) {
  const auto found = waiting_.find(id);
  return found == waiting_.end() ? nullptr : &found->second;
}

evhttp_request* MetricsServer::TakeRequest(uint64_t id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return nullptr;
  evhttp_request* request = found->second.request;
  waiting_.erase(found);
  return request;
}

void MetricsServer::OnDisconnect(evhttp_connection* connection) {
  std::erase_if(waiting_, [&](const auto& entry) {
    evhttp_request* request = entry.second.request;
    evhttp_connection* its = evhttp_request_get_connection(request);
    // If a failing connection has detached its request, the request is ours to free; otherwise it
    // is freed with the connection.
    if (its == nullptr) evhttp_request_free(request);
    return its == nullptr || its == connection;
  });
}

void MetricsServer::AnswerMetrics(evhttp_request* request) {
  if (waiting_.size() >= kMaxWaitingRequests)
    return SendText(request, kBusy, "too many requests at once");
  const uint64_t id = Keep(request);
  deps_.waiters->Add(
      control::Mailbox::kLeaks, [this, id](const std::shared_ptr<const control::Copy>& copy) {
        evhttp_request* back = TakeRequest(id);
        if (back == nullptr) return;
        if (copy == nullptr) return SendText(back, kBusy, "the collector is busy");
        const bool is_open =
            HeaderOf(back, "Accept").find("application/openmetrics-text") != std::string::npos;
        Send(back, kOk,
             is_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                     : "text/plain; version=0.0.4; charset=utf-8",
             MetricsText(deps_.complete(copy->status),
                         copy->leaks.has_value() ? &*copy->leaks : nullptr, identity_,
                         is_open ? Dialect::kOpenMetrics : Dialect::kPrometheus));
      });
}

void MetricsServer::AnswerHealth(evhttp_request* request) {
  if (waiting_.size() >= kMaxWaitingRequests)
    return SendText(request, kBusy, "too many requests at once");
  const uint64_t id = Keep(request);
  deps_.waiters->Add(
      control::Mailbox::kStatus, [this, id](const std::shared_ptr<const control::Copy>& copy) {
        evhttp_request* back = TakeRequest(id);
        if (back == nullptr) return;
        if (copy == nullptr) return SendText(back, kBusy, "the collector is busy");
        if (!copy->status.stalled()) return SendText(back, kOk, "ok");
        SendText(back, kBusy,
                 absl::StrCat("the recording cannot be written: ", copy->status.stall_reason()));
      });
}

void MetricsServer::AnswerProfile(evhttp_request* request) {
  if (waiting_.size() >= kMaxWaitingRequests)
    return SendText(request, kBusy, "too many requests at once");
  uint32_t seconds = 0;
  evkeyvalq query = {};
  const char* text = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
  if (text != nullptr && evhttp_parse_query_str(text, &query) == 0) {
    const char* given = evhttp_find_header(&query, "seconds");
    const bool is_good =
        given == nullptr || (absl::SimpleAtoi(given, &seconds) && seconds <= kMaxSeconds);
    evhttp_clear_headers(&query);
    if (!is_good)
      return SendText(request, kBadRequest,
                      absl::StrCat("seconds must be a number from 0 to ", kMaxSeconds));
  }
  const uint64_t id = Keep(request);
  deps_.waiters->Add(control::Mailbox::kSites,
                     [this, id, seconds](const std::shared_ptr<const control::Copy>& copy) {
                       Waiting* waiting = Find(id);
                       if (waiting == nullptr) return;
                       if (seconds == 0 || copy == nullptr) return SendProfile(id, copy);
                       waiting->before = copy;
                       waiting->timer.reset(event_new(
                           deps_.base, -1, 0,
                           [](int, short, void* of) {
                             MetricsServer* server = static_cast<Waiting*>(of)->server;
                             for (const auto& [its, candidate] : server->waiting_) {
                               if (&candidate == of) return server->OnSecondsPassed(its);
                             }
                           },
                           waiting));
                       const timeval after = {static_cast<time_t>(seconds), 0};
                       event_add(waiting->timer.get(), &after);
                     });
}

void MetricsServer::OnSecondsPassed(uint64_t id) {
  deps_.waiters->Add(
      control::Mailbox::kSites,
      [this, id](const std::shared_ptr<const control::Copy>& copy) { SendProfile(id, copy); });
}

void MetricsServer::SendProfile(uint64_t id, const std::shared_ptr<const control::Copy>& copy) {
  Waiting* waiting = Find(id);
  if (waiting == nullptr) return;
  const std::shared_ptr<const control::Copy> before = waiting->before;
  evhttp_request* request = TakeRequest(id);
  if (copy == nullptr) return SendText(request, kBusy, "the collector is busy");
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  auto profile = LiveProfile(*copy, before.get(), deps_.sites->definitions(), now);
  if (!profile.ok()) return SendText(request, kBusy, std::string(profile.status().message()));
  evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Disposition",
                    "attachment; filename=\"gpu.pb.gz\"");
  Send(request, kOk, "application/octet-stream", *profile);
}

}  // namespace gmt::metrics
