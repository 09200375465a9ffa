// viewer/server/http_server.h
//
// HttpServer: serves HTTP on 127.0.0.1 for one user's browser. One thread owns all connections
// (libevent's evhttp) and never blocks on a client. Two small pools compute the answers, so that a
// query that takes seconds does not delay the curves.
//
//   browser --GET--> [Serve(): evhttp] --work--> [quick | slow pool] --> [Serve()] --> browser
//
// Invariants
//   H1  A client can hold up only its own connection: one that sends slowly, never reads or never
//       finishes is disconnected after a timeout.
//   H2  A query whose client has disconnected before its turn is not computed.
//   H3  No exception leaves a handler's Answer(): it becomes a 500.
//   H3  No exception leaves an answer: it becomes a 500.
//
// Why not cpp-httplib: in Debian and Ubuntu it is a shared library that would require shipping
// libstdc++, OpenSSL and brotli, and with one thread per connection, event streams would violate
// H1.
//
// Thread safety: Serve() in one thread, in which it blocks SIGPIPE; Stop() from any thread and from
// signal handlers; SendToStreams() from any thread.

#ifndef GMT_VIEWER_SERVER_HTTP_SERVER_H_
#define GMT_VIEWER_SERVER_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "viewer/server/http_message.h"

namespace gmt::viewer {

// Answers requests. Answer() is called from several threads concurrently.
class RequestHandler {
 public:
  enum class Cost { kNone, kQuick, kSlow };

  virtual ~RequestHandler() = default;
  // Requests of kNone are answered in the serving thread: refusals, and data that is ready.
  virtual Cost CostOf(const Request& request) const = 0;
  virtual Response Answer(const Request& request) = 0;
  // Called in the serving thread when the number of open streams changes.
  virtual void StreamsChanged(size_t streams) = 0;
  // Called in the serving thread at least once a second. Returning false ends Serve().
  virtual bool ShouldContinue() = 0;
};

struct HttpLimits {
  size_t threads_per_pool = 2;
  size_t max_head_bytes = 16 * 1024;          // the longest query is a list of 1,000 stacks
  std::chrono::milliseconds silence{60'000};  // without a byte received, or accepted of an answer
  std::chrono::milliseconds heartbeat{
      15'000};                          // of streams, so that no intermediary considers them dead
  size_t max_stream_backlog = 1 << 20;  // bytes not yet accepted by a stream's client
};

class HttpServer {
 public:
  // Port 0: any free port. `handler` must outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(uint16_t port, RequestHandler* handler,
                                                            const HttpLimits& limits = {});
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  // Serves until Stop() is called or the handler ends it. Waits for answers that are being
  // computed.
  virtual void Serve() = 0;
  virtual void Stop() = 0;
  // Sends an event ("data: ...\n\n") to every open stream.
  virtual void SendToStreams(absl::string_view event) = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_HTTP_SERVER_H_
