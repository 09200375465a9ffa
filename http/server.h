// http/server.h
//
// Server: answers HTTP requests in an event loop of the caller (libevent's evhttp). It never blocks
// on a client, and requests may be answered at once or later.
//
//   client --GET--> [evhttp] --OnRequest(id, request)--> handler
//   client <------- [evhttp] <--Reply(id, response)----- handler, at once or later
//
// Invariants
//   H1  A client can hold up only its own connection: one that sends slowly, never reads or never
//       finishes is disconnected after Limits.silence.
//   H2  What clients make the process store is bounded by Limits.
//   H3  The handler sees only well-formed GET requests without a body (message.h, ReadTarget).
//   H4  Every response carries the headers of AddProtection().
//
// Why not cpp-httplib: in Debian and Ubuntu it is a shared library that would require shipping
// libstdc++, OpenSSL and brotli, and with one thread per connection, event streams would violate
// H1.
//
// Thread safety: only in the thread that runs the event loop, which must block SIGPIPE. The loop
// must outlive the server.

#ifndef GMT_HTTP_SERVER_H_
#define GMT_HTTP_SERVER_H_

#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "http/event_loop.h"
#include "http/message.h"

struct evconnlistener;
struct evhttp_bound_socket;
struct evhttp_connection;
struct evhttp_request;

namespace gmt::http {

// Answers requests by calling Reply(), at once or later. Must not destroy the server in its calls.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual void OnRequest(uint64_t id, Request request) = 0;
  // The client of an unanswered request, or of a stream, has disconnected. Not called by the
  // server's destructor.
  virtual void OnDisconnect(uint64_t id) = 0;
};

struct Limits {
  std::chrono::milliseconds silence{60'000};  // without a byte received, or accepted of an answer
  size_t max_head_bytes = 16 * 1024;          // a request has no body
  size_t max_waiting = 1024;            // unanswered requests and streams; more are refused (503)
  size_t max_stream_backlog = 1 << 20;  // bytes not yet accepted by a stream's client
  // Accepts no connection while all lower descriptors are in use, to leave others for the process.
  int max_descriptors = INT_MAX;
};

// Returns "127.0.0.1:9400" or "[::1]:9400".
std::string AddressText(const std::string& host, uint16_t port);

class Server {
 public:
  // Listens at a numeric address; port 0: any free port. Returns UNAVAILABLE if it is in use.
  // `handler` must outlive the server.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(event_base* loop, const std::string& host,
                                                        uint16_t port, Handler* handler,
                                                        const Limits& limits);
  // Accepts connections of `listening`, a non-blocking socket that it takes over.
  static absl::StatusOr<std::unique_ptr<Server>> Accept(event_base* loop, int listening,
                                                        Handler* handler, const Limits& limits);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const { return port_; }  // 0: of a Unix socket

  // Returns whether the client still waits for an answer, or reads a stream.
  bool IsWaiting(uint64_t id) const { return waiting_.count(id) != 0; }
  // These do nothing if the client has disconnected.
  void Reply(uint64_t id, Response response);
  // Sends more of a stream. A client that leaves more than max_stream_backlog unread is
  // disconnected.
  void SendToStream(uint64_t id, std::string bytes);

  // Call this several times a second: accepts connections again after descriptors were used up.
  // Until then, new clients wait in the kernel's queue.
  void Tick();

 private:
  // A request that awaits its answer or, for a stream, more of it.
  struct Waiting {
    Server* server = nullptr;
    uint64_t id = 0;
    evhttp_connection* connection = nullptr;
    evhttp_request* request = nullptr;
    EventOwned<event> left;  // fires when the client closes its side
  };

  Server(event_base* loop, Handler* handler, const Limits& limits);
  absl::Status Take(evhttp_bound_socket* bound);
  bool HasRoom() const;
  void OnRequest(evhttp_request* from);
  void Watch(Waiting& waiting, short what);
  void OnSeen(Waiting& waiting, bool is_closed);
  void OnFreed(uint64_t id);

  event_base* const loop_;
  Handler& handler_;
  const Limits limits_;
  uint16_t port_ = 0;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Waiting> waiting_;
  EventOwned<evhttp> http_;
  evconnlistener* listener_ = nullptr;
};

}  // namespace gmt::http

#endif  // GMT_HTTP_SERVER_H_
