#include "http/access.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace gmt::http {

bool IsSecret(absl::string_view given, absl::string_view secret) {
  if (secret.empty() || given.size() != secret.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i] ^ secret[i]);
  }
  return difference == 0;
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

bool IsAddressOrLocalhost(absl::string_view host) {
  if (absl::StartsWith(host, "[")) return true;
  host = host.substr(0, host.find(':'));
  return host == "localhost" || std::all_of(host.begin(), host.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.';
         });
}

}  // namespace gmt::http
