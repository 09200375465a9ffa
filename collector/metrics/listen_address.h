// collector/metrics/listen_address.h
//
// Where /metrics is to be had: the value of the option `listen`.
//
//   127.0.0.1:9400, [::1]:9400, localhost:9400   a port of this machine, for everybody on it
//   ADDRESS:PORT+token:FILE                      any address, for who has the token in FILE
//   unix:PATH                                    a socket, for its user
//
// Another address than loopback needs a token: what a process holds and where it allocates it is
// nobody else's business. The processes of one job on one machine share the option: each listens at
// the port plus its local rank.
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
  std::string unix_path;  // not empty: nothing below counts
  std::string host;       // a numeric address
  uint16_t port = 0;      // 0: any
  bool is_loopback = false;
  std::string token_file;

  std::string Text() const;  // "127.0.0.1:9401"
};

// INVALID_ARGUMENT with what is wrong. `local_rank`: empty where there is none.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text,
                                                 const std::string& local_rank);

// The token in a file, which must be its user's alone: the first line, 16 characters or more.
absl::StatusOr<std::string> ReadToken(const std::string& file);

}  // namespace gmt::metrics

#endif  // GMT_COLLECTOR_METRICS_LISTEN_ADDRESS_H_
