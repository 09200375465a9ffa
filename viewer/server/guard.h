// viewer/server/guard.h
//
// Guard: who may ask. The server listens on loopback, where every page of every browser, and every
// user of the machine, can reach it:
//
//   who                                          kept out by
//   another user, who sees the port              the token, which only the address has
//   a page that has its name point to 127.0.0.1  Host: a name that is not ours
//   a page that asks across origins              Origin, Sec-Fetch-Site; no CORS header is ever sent
//   a page that frames or opens ours             the policy, X-Frame-Options, opener policy
//
// Thread safety: immutable.

#ifndef GMT_VIEWER_SERVER_GUARD_H_
#define GMT_VIEWER_SERVER_GUARD_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "viewer/server/http_message.h"

namespace gmt::viewer {

// 128 bits of the kernel's randomness, as 32 hex digits. Empty where it gives none.
std::string MakeToken();

class Guard {
 public:
  explicit Guard(std::string token) : token_(std::move(token)) {}

  // The answer to who may not ask; nothing where he may. *rest gets the path behind "/TOKEN": "" or
  // "/...".
  std::optional<Response> Refuse(const Request& request, std::string* rest) const;

  // What every answer carries.
  static void AddHeaders(Response& response);

 private:
  bool IsToken(absl::string_view text) const;

  std::string token_;
};

// "127.0.0.1", "localhost" or "[::1]", with any port: behind a forwarding it is another one.
bool IsLoopbackHost(absl::string_view host);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_GUARD_H_
