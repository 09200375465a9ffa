// collector/metrics/metrics_server.h
//
// MetricsServer: serves /metrics, /healthz and /debug/pprof/gpu over HTTP, in the thread of the
// control socket and from the same copies. docs/metrics.md describes the answers.
//
// Invariants
//   M1  On an address that other machines can reach, a request without the token is refused before
//       its path is read; it does not even learn which paths exist.
//   M2  On loopback, Host must be an address or localhost. This keeps a web page from sending
//       requests through a host name of its own that resolves to this machine (DNS rebinding).
//   M3  A client that sends slowly, never reads or opens hundreds of connections is closed after
//       kSilence and leaves descriptors for the recording (http/server.h).
//
// Thread safety: only from the thread that runs the event loop.

#ifndef GMT_COLLECTOR_METRICS_METRICS_SERVER_H_
#define GMT_COLLECTOR_METRICS_METRICS_SERVER_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "collector/mailbox/copy_waiters.h"
#include "collector/mailbox/site_summary.h"
#include "collector/metrics/listen_address.h"
#include "collector/metrics/metrics_text.h"
#include "http/event_loop.h"
#include "http/server.h"

namespace gmt::control {
class Status;
}

namespace gmt::metrics {

class MetricsServer final : private http::Handler {
 public:
  struct Dependencies {
    event_base* base = nullptr;
    control::CopyWaiters* waiters = nullptr;
    const control::SiteSummary* sites = nullptr;
    // Adds what is known without the draining thread.
    std::function<control::Status(const control::Status&)> complete;
  };

  static constexpr std::chrono::seconds kSilence{10};
  static constexpr uint32_t kMaxSeconds = 600;  // maximum length of a differential profile

  MetricsServer(Dependencies deps, Identity identity)
      : deps_(std::move(deps)), identity_(std::move(identity)) {}
  ~MetricsServer() override;
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Fails if the port, or the Unix socket, is in use.
  absl::Status Open(const ListenAddress& address);
  // "http://127.0.0.1:9400".
  std::string Url() const;
  void Tick() { http_->Tick(); }  // as http::Server::Tick()

 private:
  // A differential profile whose seconds have not passed yet.
  struct Profile {
    MetricsServer* server = nullptr;
    uint64_t request = 0;
    http::EventOwned<event> timer;
    std::shared_ptr<const control::Copy> before;
  };

  void OnRequest(uint64_t id, http::Request request) override;
  void OnDisconnect(uint64_t id) override { profiles_.erase(id); }
  // Returns the error response to a request that is not allowed.
  std::optional<http::Response> Refuse(const http::Request& request) const;
  void AnswerMetrics(uint64_t id, const http::Request& request);
  void AnswerHealth(uint64_t id);
  void AnswerProfile(uint64_t id, const http::Request& request);
  void BeginProfile(uint64_t id, uint32_t seconds, std::shared_ptr<const control::Copy> before);
  void EndProfile(uint64_t id);
  void SendProfile(uint64_t id, const control::Copy* copy, const control::Copy* before);

  const Dependencies deps_;
  const Identity identity_;
  ListenAddress address_;
  std::string token_;
  std::map<uint64_t, Profile> profiles_;  // by request
  ino_t inode_ = 0;  // identifies the Unix socket that the destructor removes; 0: none
  std::unique_ptr<http::Server> http_;
};

}  // namespace gmt::metrics

#endif  // GMT_COLLECTOR_METRICS_METRICS_SERVER_H_
