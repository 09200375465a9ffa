// viewer/server/guard.h
//
// Guard: decides which requests are accepted. The server listens on loopback, where every page of
// every browser, and every user of the machine, can reach it:
//
//   requester                                        rejected by
//   another user, who sees the port                  the token, which only the address contains
//   a page whose host name resolves to 127.0.0.1     Host: any name other than loopback
//   a page that sends cross-origin requests          Origin, Sec-Fetch-Site; no CORS header is ever
//                                                    sent
//   a page that frames or opens our page             the policy, X-Frame-Options, opener policy
//
// Thread safety: immutable.

#ifndef GMT_VIEWER_SERVER_GUARD_H_
#define GMT_VIEWER_SERVER_GUARD_H_

#include <optional>
#include <string>

#include "http/message.h"

namespace gmt::viewer {

// Returns 128 random bits from the kernel as 32 hex digits, or "" if the kernel provides none.
std::string MakeToken();

class Guard {
 public:
  explicit Guard(std::string token) : token_(std::move(token)) {}

  // Returns the error response to a request that is not allowed, or nullopt if it is allowed. *rest
  // is set to the path after "/TOKEN": "" or "/...".
  std::optional<http::Response> Refuse(const http::Request& request, std::string* rest) const;

 private:
  std::string token_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_GUARD_H_
