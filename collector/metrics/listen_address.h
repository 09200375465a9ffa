// collector/metrics/listen_address.h
//
// The address of the HTTP server: the value of the option `listen`.
//
//   127.0.0.1:9400, [::1]:9400, localhost:9400   a port for all users of this machine
//   ADDRESS:PORT+token:FILE                      any address, for clients with the token in FILE
//   unix:PATH                                    a socket for its own user
//
// Addresses other than loopback require a token, because what a process holds, and in which code,
// is private. The processes of a job on one machine share the option: each listens on the port plus
// its local rank.
//
// Thread safety: pure functions.

#ifndef GMT_COLLECTOR_METRICS_LISTEN_ADDRESS_H_
#define GMT_COLLECTOR_METRICS_LISTEN_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gmt::metrics {

struct ListenAddress {
  std::string unix_path;  // if not empty, all other fields are unused
  std::string host;       // a numeric address
  uint16_t port = 0;      // 0: any
  bool is_loopback = false;
  std::string token_file;

  std::string Text() const;  // "127.0.0.1:9401"
};

// Returns INVALID_ARGUMENT with the reason. `local_rank`: empty if there is none.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text,
                                                 const std::string& local_rank);

// Returns the token in a file that only its user may read: the first line, at least 16 characters.
absl::StatusOr<std::string> ReadToken(const std::string& file);

}  // namespace gmt::metrics

#endif  // GMT_COLLECTOR_METRICS_LISTEN_ADDRESS_H_
