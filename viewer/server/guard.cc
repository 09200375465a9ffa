#include "viewer/server/guard.h"

#include <sys/random.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "http/access.h"
#include "viewer/server/error_response.h"

namespace gmt::viewer {
namespace {

constexpr size_t kTokenBytes = 16;

// Another page, such as a terminal in the browser or a chat, may contain a link to our page. Only
// the page itself can be opened by such a link, and only with the token.
bool IsOpening(const http::Request& request, absl::string_view rest) {
  const std::string* mode = request.Header("sec-fetch-mode");
  const std::string* destination = request.Header("sec-fetch-dest");
  return rest == "/" && mode != nullptr && *mode == "navigate" && destination != nullptr &&
         *destination == "document";
}

bool IsOurOrigin(const http::Request& request) {
  const std::string *origin = request.Header("origin"), *host = request.Header("host");
  return origin == nullptr || absl::EqualsIgnoreCase(*origin, absl::StrCat("http://", *host));
}

bool IsOurSite(const http::Request& request, absl::string_view rest) {
  const std::string* site = request.Header("sec-fetch-site");
  return site == nullptr || *site == "same-origin" || *site == "none" || IsOpening(request, rest);
}

}  // namespace

std::string MakeToken() {
  std::string bytes(kTokenBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  return absl::BytesToHexString(bytes);
}

std::optional<http::Response> Guard::Refuse(const http::Request& request, std::string* rest) const {
  const std::string* host = request.Header("host");
  if (host == nullptr || !http::IsLoopbackHost(*host)) {
    return ErrorResponse(421, "this server accepts only 127.0.0.1 and localhost as its host");
  }
  if (!IsOurOrigin(request)) {
    return ErrorResponse(403, "this server accepts requests only from its own page");
  }
  const absl::string_view path = absl::string_view(request.path).substr(1);
  const size_t slash = std::min(path.find('/'), path.size());
  if (!http::IsSecret(path.substr(0, slash), token_)) {
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

}  // namespace gmt::viewer
