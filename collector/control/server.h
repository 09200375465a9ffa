// collector/control/server.h
//
// Server: the control socket of a running collector (proto/control.proto, docs/control.md), in a
// thread of its own, and HTTP beside it where that is asked for (collector/metrics/http_door.h). It sees nothing of the session, only what the drain puts on the desk.
//
// Invariants
//   S1  The drain never waits for a client, whatever that does (collector/control/desk.h, D1).
//   S2  Only the collector's own user and root are served (SO_PEERCRED).
//   S3  What a client can make the server keep is bounded: kMaxClients connections, a request of 64
//       KiB, kMaxWaiting requests that wait for their answers, and of what it does not read no more than
//       kMaxUnread and those answers; who takes nothing for kSilence is dropped, and the one that has
//       been quiet longest when another one comes.
//
// Thread safety: made and destroyed in one thread, which must be that of nobody's signal handlers.

#ifndef GMT_COLLECTOR_CONTROL_SERVER_H_
#define GMT_COLLECTOR_CONTROL_SERVER_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collector/control/desk.h"
#include "collector/metrics/metrics_text.h"
#include "proto/control.pb.h"

namespace gmt::control {

struct ServerOptions {
  std::string session;  // its path, or its name by this collector (socket_path.h); empty: no socket
  Hello hello;          // the first words to each client
  std::string listen;   // for HTTP as well: the option of that name; empty: nowhere
  metrics::Identity identity;
  size_t max_clients = 16;
  std::chrono::milliseconds silence{30'000};
};

class Server {
 public:
  // `desk` must outlive it. Takes the place of a socket that a collector left that was killed.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options, Desk* desk);
  // Says what is left to say, closes and removes the socket.
  virtual ~Server() = default;

  // Removes the socket's name; who is connected stays. Nobody comes after that.
  virtual void RemoveName() = 0;

  // "http://127.0.0.1:9400", empty where it is nowhere; and then, where it was asked for, why not.
  virtual std::string listening() const = 0;
  virtual std::string listen_problem() const = 0;
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_SERVER_H_
