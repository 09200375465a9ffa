// viewer/server/http_server.h
//
// HttpServer: HTTP on 127.0.0.1 for one person's browser. One thread owns all connections (libevent's
// evhttp) and never waits for anyone; answers are computed by two small pools, so that a question that
// takes seconds does not hold up the curves.
//
//   browser --GET--> [Serve(): evhttp] --work--> [quick | slow pool] --answer--> [Serve()] --> browser
//
// Invariants
//   H1  A client can hold only its own connection: who sends slowly, never reads or never ends is
//       closed after a while.
//   H2  A question whose asker has gone before its turn is not computed.
//   H3  No exception leaves an answer: it becomes a 500.
//
// Why not cpp-httplib: Debian's and Ubuntu's is a shared library that would have libstdc++, OpenSSL and
// brotli travel with it, and a thread for each connection does not give H1 with event streams.
//
// Thread safety: Serve() in one thread, for which it blocks SIGPIPE; Stop() from any thread and from signal handlers;
// SendToStreams() from any thread.

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

// What answers. Called from many threads at once.
class RequestHandler {
 public:
  enum class Cost { kNone, kQuick, kSlow };

  virtual ~RequestHandler() = default;
  // kNone is answered by the thread of all connections: for refusals and what lies ready.
  virtual Cost CostOf(const Request& request) const = 0;
  virtual Response Answer(const Request& request) = 0;
  // From the thread of all connections: so many streams are open from now on.
  virtual void StreamsChanged(size_t streams) = 0;
  // From the same thread, at least once a second. Ends Serve() where it returns false.
  virtual bool GoOn() = 0;
};

struct HttpLimits {
  size_t threads_per_pool = 2;
  size_t max_head_bytes = 16 * 1024;          // the longest question is a list of 1,000 stacks
  std::chrono::milliseconds silence{60'000};  // without a byte sent, or taken of an answer
  std::chrono::milliseconds heartbeat{
      15'000};                          // of streams, so that nobody between takes them for dead
  size_t max_stream_backlog = 1 << 20;  // bytes that a stream's reader has not taken
};

class HttpServer {
 public:
  // Port 0: any. `handler` must outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(uint16_t port, RequestHandler* handler,
                                                            const HttpLimits& limits = {});
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  // Until Stop() or the handler ends it. Waits for answers that are being computed.
  virtual void Serve() = 0;
  virtual void Stop() = 0;
  // An event ("data: ...\n\n") for every open stream.
  virtual void SendToStreams(absl::string_view event) = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_HTTP_SERVER_H_
