#include "collector/metrics/metrics_server.h"

#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "collector/metrics/live_profile.h"
#include "collector/sessions/unix_socket.h"
#include "http/access.h"

namespace gmt::metrics {
namespace {

constexpr size_t kMaxWaitingRequests = 64;
constexpr int kMaxDescriptors = 256;
constexpr int kBacklog = 64;

enum Code {
  kOk = 200,
  kBadRequest = 400,
  kUnauthorized = 401,
  kForbidden = 403,
  kNotFound = 404,
  kBusy = 503
};

std::string HeaderOf(const http::Request& request, absl::string_view name) {
  const std::string* value = request.Header(name);
  return value == nullptr ? "" : *value;
}

http::Response Busy() { return http::TextResponse(kBusy, "the collector is busy"); }

http::Response OfType(const char* type, std::string body) {
  http::Response response;
  response.type = type;
  response.body = std::move(body);
  return response;
}

// Returns whether "seconds" is absent from the query, or a number that is allowed.
bool ReadSeconds(const std::string& query, uint32_t* seconds) {
  evkeyvalq parameters = {};
  if (query.empty() || evhttp_parse_query_str(query.c_str(), &parameters) != 0) return true;
  const char* given = evhttp_find_header(&parameters, "seconds");
  const bool is_good = given == nullptr ||
                       (absl::SimpleAtoi(given, seconds) && *seconds <= MetricsServer::kMaxSeconds);
  evhttp_clear_headers(&parameters);
  return is_good;
}

}  // namespace

MetricsServer::~MetricsServer() {
  // While the server listens, no other socket has its inode.
  if (inode_ != 0) control::RemoveSocket(address_.unix_path, inode_);
  http_.reset();
}

absl::Status MetricsServer::Open(const ListenAddress& address) {
  address_ = address;
  if (!address.token_file.empty()) {
    auto token = ReadToken(address.token_file);
    if (!token.ok()) return token.status();
    token_ = *std::move(token);
  }
  http::Limits limits;
  limits.silence = kSilence;
  limits.max_waiting = kMaxWaitingRequests;
  limits.max_descriptors = kMaxDescriptors;
  absl::StatusOr<std::unique_ptr<http::Server>> server;
  if (address.unix_path.empty()) {
    server = http::Server::Listen(deps_.base, address.host, address.port, this, limits);
  } else {
    absl::StatusOr<int> fd =
        control::ListenAt(address.unix_path, kBacklog, control::IfInUse::kFail);
    if (!fd.ok()) return fd.status();
    inode_ = control::SocketInode(address.unix_path);
    server = http::Server::Accept(deps_.base, *fd, this, limits);
  }
  if (!server.ok()) return server.status();
  http_ = *std::move(server);
  address_.port = http_->port();
  return absl::OkStatus();
}

std::string MetricsServer::Url() const {
  return address_.unix_path.empty() ? absl::StrCat("http://", address_.Text()) : address_.Text();
}

std::optional<http::Response> MetricsServer::Refuse(const http::Request& request) const {
  const std::string authorization = HeaderOf(request, "authorization");
  absl::string_view given = authorization;
  if (!token_.empty() &&
      !(absl::ConsumePrefix(&given, "Bearer ") && http::IsSecret(given, token_))) {
    http::Response refusal = http::TextResponse(kUnauthorized, "a bearer token is required");
    refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
    return refusal;
  }
  if (address_.is_loopback && !http::IsAddressOrLocalhost(HeaderOf(request, "host")))
    return http::TextResponse(kForbidden, "the host must be an address or localhost");
  return std::nullopt;
}

void MetricsServer::OnRequest(uint64_t id, http::Request request) {
  if (auto refusal = Refuse(request)) return http_->Reply(id, *std::move(refusal));
  if (request.path == "/metrics") return AnswerMetrics(id, request);
  if (request.path == "/healthz") return AnswerHealth(id);
  if (request.path == "/debug/pprof/gpu") return AnswerProfile(id, request);
  http_->Reply(id,
               http::TextResponse(kNotFound, "available: /metrics, /healthz and /debug/pprof/gpu"));
}

void MetricsServer::AnswerMetrics(uint64_t id, const http::Request& request) {
  const bool is_open =
      absl::StrContains(HeaderOf(request, "accept"), "application/openmetrics-text");
  deps_.waiters->Add(
      control::Mailbox::kLeaks,
      [this, id, is_open](const std::shared_ptr<const control::Copy>& copy) {
        if (!http_->IsWaiting(id)) return;
        if (copy == nullptr) return http_->Reply(id, Busy());
        http_->Reply(
            id, OfType(is_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                               : "text/plain; version=0.0.4; charset=utf-8",
                       MetricsText(deps_.complete(copy->status),
                                   copy->leaks.has_value() ? &*copy->leaks : nullptr, identity_,
                                   is_open ? Dialect::kOpenMetrics : Dialect::kPrometheus)));
      });
}

void MetricsServer::AnswerHealth(uint64_t id) {
  deps_.waiters->Add(
      control::Mailbox::kStatus, [this, id](const std::shared_ptr<const control::Copy>& copy) {
        if (copy == nullptr) return http_->Reply(id, Busy());
        if (!copy->status.stalled()) return http_->Reply(id, http::TextResponse(kOk, "ok"));
        http_->Reply(id, http::TextResponse(kBusy, absl::StrCat("the recording cannot be written: ",
                                                                copy->status.stall_reason())));
      });
}

void MetricsServer::AnswerProfile(uint64_t id, const http::Request& request) {
  uint32_t seconds = 0;
  if (!ReadSeconds(request.query, &seconds)) {
    return http_->Reply(
        id, http::TextResponse(kBadRequest,
                               absl::StrCat("seconds must be a number from 0 to ", kMaxSeconds)));
  }
  deps_.waiters->Add(control::Mailbox::kSites,
                     [this, id, seconds](const std::shared_ptr<const control::Copy>& copy) {
                       if (seconds == 0 || copy == nullptr)
                         return SendProfile(id, copy.get(), nullptr);
                       BeginProfile(id, seconds, copy);
                     });
}

void MetricsServer::BeginProfile(uint64_t id, uint32_t seconds,
                                 std::shared_ptr<const control::Copy> before) {
  if (!http_->IsWaiting(id)) return;
  Profile& profile = profiles_[id];
  profile.server = this;
  profile.request = id;
  profile.before = std::move(before);
  profile.timer.reset(event_new(
      deps_.base, -1, 0,
      [](int, short, void* of) {
        const Profile* due = static_cast<Profile*>(of);
        due->server->EndProfile(due->request);
      },
      &profile));
  const timeval after = {static_cast<time_t>(seconds), 0};
  event_add(profile.timer.get(), &after);
}

void MetricsServer::EndProfile(uint64_t id) {
  auto before = std::move(profiles_[id].before);
  profiles_.erase(id);
  deps_.waiters->Add(
      control::Mailbox::kSites,
      [this, id, before = std::move(before)](const std::shared_ptr<const control::Copy>& copy) {
        SendProfile(id, copy.get(), before.get());
      });
}

void MetricsServer::SendProfile(uint64_t id, const control::Copy* copy,
                                const control::Copy* before) {
  if (!http_->IsWaiting(id)) return;
  if (copy == nullptr) return http_->Reply(id, Busy());
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  auto profile = LiveProfile(*copy, before, deps_.sites->definitions(), now);
  if (!profile.ok()) return http_->Reply(id, http::TextResponse(kBusy, profile.status().message()));
  http::Response response = OfType("application/octet-stream", *std::move(profile));
  response.headers.emplace_back("Content-Disposition", "attachment; filename=\"gpu.pb.gz\"");
  http_->Reply(id, std::move(response));
}

}  // namespace gmt::metrics
