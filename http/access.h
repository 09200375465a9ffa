// http/access.h
//
// What servers check of a request before they answer it: its secret, and by which name its client
// knows this machine. A web page can send requests through a host name of its own that resolves to
// this machine (DNS rebinding), but its browser then sends that name as Host.
//
// Thread safety: pure functions.

#ifndef GMT_HTTP_ACCESS_H_
#define GMT_HTTP_ACCESS_H_

#include "absl/strings/string_view.h"

namespace gmt::http {

// Returns whether both are the same secret. The time does not depend on which characters differ, so
// that it does not reveal how much of a wrong secret is right.
bool IsSecret(absl::string_view given, absl::string_view secret);

// Returns whether `host` is "127.0.0.1", "localhost" or "[::1]". Any port is accepted, because port
// forwarding may change it.
bool IsLoopbackHost(absl::string_view host);

// Returns whether `host` is any numeric address or "localhost", with or without a port, or empty.
bool IsAddressOrLocalhost(absl::string_view host);

}  // namespace gmt::http

#endif  // GMT_HTTP_ACCESS_H_
