// viewer/server/query_server.h
//
// QueryServer: answers the queries of one user's browser over HTTP on 127.0.0.1. One thread owns
// all connections (http/server.h). Two small pools compute the answers, so that a query that takes
// seconds does not delay the curves.
//
//   browser --GET--> [Serve()] --work--> [quick | slow pool] --> [Serve()] --> browser
//
// Invariants
//   Q1  A query whose client has disconnected before its turn is not computed.
//   Q2  No exception leaves a handler's Answer(): it becomes a 500.
//
// Thread safety: Serve() in one thread, in which it blocks SIGPIPE; Stop() from any thread and from
// signal handlers; SendToStreams() from any thread.

#ifndef GMT_VIEWER_SERVER_QUERY_SERVER_H_
#define GMT_VIEWER_SERVER_QUERY_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "http/message.h"
#include "http/server.h"

namespace gmt::viewer {

// Answers queries. Answer() is called from several threads concurrently.
class QueryHandler {
 public:
  enum class Cost { kNone, kQuick, kSlow };

  virtual ~QueryHandler() = default;
  // Queries of kNone are answered in the serving thread: refusals, data that is ready, and streams.
  virtual Cost CostOf(const http::Request& request) const = 0;
  // The body of a stream is the first of its server-sent events.
  virtual http::Response Answer(const http::Request& request) = 0;
  // Called in the serving thread when the number of open streams changes.
  virtual void StreamsChanged(size_t streams) = 0;
  // Called in the serving thread at least once a second. Returning false ends Serve().
  virtual bool ShouldContinue() = 0;
};

struct QueryLimits {
  size_t threads_per_pool = 2;
  // Interval of messages on streams, so that no intermediary considers them dead.
  std::chrono::milliseconds heartbeat{15'000};
  http::Limits http;
};

class QueryServer {
 public:
  // Port 0: any free port. `handler` must outlive the server.
  static absl::StatusOr<std::unique_ptr<QueryServer>> Listen(uint16_t port, QueryHandler* handler,
                                                             const QueryLimits& limits = {});
  virtual ~QueryServer() = default;

  virtual uint16_t port() const = 0;
  // Serves until Stop() is called or the handler ends it. Waits for answers that are being
  // computed.
  virtual void Serve() = 0;
  virtual void Stop() = 0;
  // Sends an event ("data: ...\n\n") to every open stream.
  virtual void SendToStreams(absl::string_view event) = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_QUERY_SERVER_H_
