// collector/metrics/http_door.h
//
// HttpDoor: /metrics, /healthz and /debug/pprof/gpu, answered by the thread that serves the control
// socket, from the same copies. docs/metrics.md says what each answers.
//
// Invariants
//   M1  An address that others can reach is answered for who has the token, and nobody else: not even
//       with what there is.
//   M2  On loopback a browser's page cannot ask by a name of its own that it had point there: Host
//       must be an address or localhost.
//   M3  Who sends slowly, never reads or opens connections by the hundred is closed after kSilence, and
//       leaves descriptors for the recording.
//
// Thread safety: of the thread that runs the event loop.

#ifndef GMT_COLLECTOR_METRICS_HTTP_DOOR_H_
#define GMT_COLLECTOR_METRICS_HTTP_DOOR_H_

#include <event2/util.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "collector/control/copy_waiters.h"
#include "collector/control/event_owned.h"
#include "collector/control/site_book.h"
#include "collector/metrics/listen_address.h"
#include "collector/metrics/metrics_text.h"

struct evconnlistener;
struct evhttp_connection;
struct evhttp_request;

namespace gmt::control {
class Status;
}

namespace gmt::metrics {

class HttpDoor {
 public:
  struct Behind {
    event_base* base = nullptr;
    control::CopyWaiters* waiters = nullptr;
    const control::SiteBook* sites = nullptr;
    // What the drain need not be asked for.
    std::function<control::Status(const control::Status&)> complete;
  };

  static constexpr std::chrono::seconds kSilence{10};
  static constexpr uint32_t kMostSeconds = 600;  // of a difference

  HttpDoor(Behind behind, Identity identity)
      : behind_(std::move(behind)), identity_(std::move(identity)) {}
  ~HttpDoor();
  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;

  // UNAVAILABLE where the port is taken.
  absl::Status Open(const ListenAddress& address);
  // "http://127.0.0.1:9400".
  std::string Url() const;
  // Now and then: who was turned away for want of room is let in again.
  void Tick();

 private:
  // A request that waits for a copy, or for time to pass.
  struct Waiting {
    HttpDoor* door = nullptr;
    evhttp_request* request = nullptr;
    control::EventOwned<event> timer;
    std::shared_ptr<const control::Copy> before;
  };

  absl::Status Bind(const ListenAddress& address);
  bool HasRoom() const;
  void OnRequest(evhttp_request* request);
  // 0: he may ask.
  int WhyNot(evhttp_request* request) const;
  void AnswerMetrics(evhttp_request* request);
  void AnswerHealth(evhttp_request* request);
  void AnswerProfile(evhttp_request* request);
  void OnSecondsPassed(uint64_t id);
  void SendProfile(uint64_t id, const std::shared_ptr<const control::Copy>& copy);
  uint64_t Keep(evhttp_request* request);
  Waiting* Find(uint64_t id);
  // The request, which is waited for no more; null where who asked has gone.
  evhttp_request* TakeBack(uint64_t id);
  void OnGone(evhttp_connection* connection);

  const Behind behind_;
  const Identity identity_;
  ListenAddress address_;
  std::string token_;
  control::EventOwned<evhttp> http_;
  evconnlistener* listener_ = nullptr;
  std::map<uint64_t, Waiting> waiting_;
  uint64_t next_id_ = 1;
  std::string socket_;  // to be removed
};

}  // namespace gmt::metrics

#endif  // GMT_COLLECTOR_METRICS_HTTP_DOOR_H_
