// collector/metrics/metrics_server.h
//
// MetricsServer: serves /metrics, /healthz and /debug/pprof/gpu over HTTP, in the thread of the
// control socket and from the same copies. docs/metrics.md describes the answers.
//
// Invariants
//   M1  On an address that other machines can reach, a request without the token is refused before
//       anything else; it does not even learn which paths exist.
//   M2  On loopback, Host must be an address or localhost. This keeps a web page from sending
//       requests through a host name of its own that resolves to this machine (DNS rebinding).
//   M3  A client that sends slowly, never reads or opens hundreds of connections is closed after
//       kSilence and leaves descriptors for the recording.
//
// Thread safety: only from the thread that runs the event loop.

#ifndef GMT_COLLECTOR_METRICS_METRICS_SERVER_H_
#define GMT_COLLECTOR_METRICS_METRICS_SERVER_H_

#include <event2/util.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "collector/control/copy_waiters.h"
#include "collector/control/event_owned.h"
#include "collector/control/site_summary.h"
#include "collector/metrics/listen_address.h"
#include "collector/metrics/metrics_text.h"

struct evconnlistener;
struct evhttp_connection;
struct evhttp_request;

namespace gmt::control {
class Status;
}

namespace gmt::metrics {

class MetricsServer {
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
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Returns UNAVAILABLE if the port is in use.
  absl::Status Open(const ListenAddress& address);
  // "http://127.0.0.1:9400".
  std::string Url() const;
  // Call regularly: accepts connections again after they were refused for lack of descriptors.
  void Tick();

 private:
  // A request that waits for a copy or for a timer.
  struct Waiting {
    MetricsServer* server = nullptr;
    evhttp_request* request = nullptr;
    control::EventOwned<event> timer;
    std::shared_ptr<const control::Copy> before;
  };

  absl::Status Bind(const ListenAddress& address);
  bool HasRoom() const;
  void OnRequest(evhttp_request* request);
  // Returns the HTTP status with which to refuse the request; 0 to serve it.
  int RefusalCode(evhttp_request* request) const;
  void AnswerMetrics(evhttp_request* request);
  void AnswerHealth(evhttp_request* request);
  void AnswerProfile(evhttp_request* request);
  void OnSecondsPassed(uint64_t id);
  void SendProfile(uint64_t id, const std::shared_ptr<const control::Copy>& copy);
  uint64_t Keep(evhttp_request* request);
  Waiting* Find(uint64_t id);
  // Removes and returns a waiting request; null if its client has disconnected.
  evhttp_request* TakeRequest(uint64_t id);
  void OnDisconnect(evhttp_connection* connection);

  const Dependencies deps_;
  const Identity identity_;
  ListenAddress address_;
  std::string token_;
  control::EventOwned<evhttp> http_;
  evconnlistener* listener_ = nullptr;
  std::map<uint64_t, Waiting> waiting_;
  uint64_t next_id_ = 1;
  std::string socket_;  // path of the Unix socket to remove
};

}  // namespace gmt::metrics

#endif  // GMT_COLLECTOR_METRICS_METRICS_SERVER_H_
