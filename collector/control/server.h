// collector/control/server.h
//
// Server: the control socket of a running collector (proto/control.proto, docs/control.md), served
// by its own thread, and optionally the HTTP server (collector/metrics/metrics_server.h). It sees
// only what the draining thread puts into the mailbox, not the session.
//
// Invariants
//   S1  The draining thread never waits for a client (collector/mailbox/mailbox.h, D1).
//   S2  Only the collector's own user and root are served (SO_PEERCRED).
//   S3  What a client can make the server store is bounded: max_clients connections, requests of 64
//       KiB, kMaxWaiting requests that wait for answers, and kMaxUnread bytes of unread replies
//       plus those answers. A client that reads nothing for `silence` is dropped. If the limit of
//       connections is reached, the one that has been quiet for longest is dropped.
//
// Thread safety: create and destroy it in one thread, not in a signal handler. Its own thread
// blocks all signals.

#ifndef GMT_COLLECTOR_CONTROL_SERVER_H_
#define GMT_COLLECTOR_CONTROL_SERVER_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collector/mailbox/mailbox.h"
#include "collector/metrics/metrics_text.h"
#include "proto/control.pb.h"

namespace gmt::control {

struct ServerOptions {
  std::string session;  // its path, or its name by the collector (socket_path.h); empty: no socket
  Hello hello;          // the first message to each client
  std::string listen;   // the option `listen` for HTTP; empty: no HTTP server
  metrics::Identity identity;
  size_t max_clients = 16;
  std::chrono::milliseconds silence{30'000};
};

class Server {
 public:
  // `mailbox` must outlive the server. Replaces a socket left behind by a collector that was
  // killed.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       Mailbox* mailbox);
  // Sends the remaining replies, closes and removes the socket.
  virtual ~Server() = default;

  // Removes the socket's name. Connected clients stay; no new ones can connect.
  virtual void RemoveName() = 0;

  // The HTTP server's URL ("http://127.0.0.1:9400"), empty if there is none; and the reason if one
  // was requested.
  virtual std::string listening() const = 0;
  virtual std::string listen_problem() const = 0;
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_SERVER_H_
