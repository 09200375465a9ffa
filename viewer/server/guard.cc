#include "viewer/server/guard.h"

#include <sys/random.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gmt::viewer {
namespace {

constexpr size_t kTokenBytes = 16;

// Another page, such as a terminal in the browser or a chat, may contain a link to our page. Only
// the page itself can be opened by such a link, and only with the token.
bool IsOpening(const Request& request, absl::string_view rest) {
  const std::string* mode = request.Header("sec-fetch-mode");
  const std::string* destination = request.Header("sec-fetch-dest");
  return rest == "/" && mode != nullptr && *mode == "navigate" && destination != nullptr &&
         *destination == "document";
}

bool IsOurOrigin(const Request& request) {
  const std::string *origin = request.Header("origin"), *host = request.Header("host");
  return origin == nullptr || absl::EqualsIgnoreCase(*origin, absl::StrCat("http://", *host));
}

bool IsOurSite(const Request& request, absl::string_view rest) {
  const std::string* site = request.Header("sec-fetch-site");
  return site == nullptr || *site == "same-origin" || *site == "none" || IsOpening(request, rest);
}

}  // namespace

std::string MakeToken() {
  std::string bytes(kTokenBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  return absl::BytesToHexString(bytes);
}

bool IsLoopbackHost(absl::string_view host) {
  // The port follows the first colon; for an IPv6 address, the first one after its bracket.
  const size_t colon = host.find(':', absl::StartsWith(host, "[") ? host.find(']') : 0);
  const absl::string_view name = host.substr(0, colon);
  const absl::string_view port =
      colon == absl::string_view::npos ? absl::string_view("0") : host.substr(colon + 1);
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != port.npos) {
    return false;
  }
  return name == "127.0.0.1" || name == "[::1]" || absl::EqualsIgnoreCase(name, "localhost");
}

// Runs in constant time, so that timing does not reveal how much of a wrong token is right.
bool Guard::IsToken(absl::string_view text) const {
  if (token_.empty() || text.size() != token_.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    difference |= static_cast<unsigned char>(text[i]) ^ static_cast<unsigned char>(token_[i]);
  }
  return difference == 0;
}

std::optional<Response> Guard::Refuse(const Request& request, std::string* rest) const {
  const std::string* host = request.Header("host");
  if (host == nullptr || !IsLoopbackHost(*host)) {
    return ErrorResponse(421, "this server accepts only 127.0.0.1 and localhost as its host");
  }
  if (!IsOurOrigin(request)) {
    return ErrorResponse(403, "this server accepts requests only from its own page");
  }
  const absl::string_view path = absl::string_view(request.path).substr(1);
  const size_t slash = std::min(path.find('/'), path.size());
  if (!IsToken(path.substr(0, slash))) {
    return ErrorResponse(404,
                         "nothing is here; the page's address is the one that "
                         "gpumemtrace view printed, with the key in it");
  }
  *rest = std::string(path.substr(slash));
  if (!IsOurSite(request, *rest)) {
    return ErrorResponse(403, "this server accepts requests only from its own page");
  }
  return std::nullopt;
}

void Guard::AddHeaders(Response& response) {
  const bool has_policy =
      std::any_of(response.headers.begin(), response.headers.end(),
                  [](const auto& header) { return header.first == "Content-Security-Policy"; });
  if (!has_policy) {
    response.headers.emplace_back("Content-Security-Policy",
                                  "default-src 'none'; frame-ancestors 'none'");
  }
  response.headers.insert(response.headers.end(), {{"Cache-Control", "no-store"},
                                                   {"X-Content-Type-Options", "nosniff"},
                                                   {"Referrer-Policy", "no-referrer"},
                                                   {"Cross-Origin-Opener-Policy", "same-origin"},
                                                   {"Cross-Origin-Resource-Policy", "same-origin"},
                                                   {"X-Frame-Options", "DENY"}});
}

}  // namespace gmt::viewer
