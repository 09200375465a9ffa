#include "collector/metrics/listen_address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "http/server.h"

namespace gmt::metrics {
namespace {

constexpr size_t kMinTokenBytes = 16, kMaxTokenBytes = 4096;

absl::Status Wrong(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("listen=", std::string(text), ": ", std::string(why)));
}

bool IsLoopback(const std::string& host) {
  in6_addr six = {};
  in_addr four = {};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

bool IsNumeric(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

std::string ListenAddress::Text() const {
  return unix_path.empty() ? http::AddressText(host, port) : absl::StrCat("unix:", unix_path);
}

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text,
                                                 const std::string& local_rank) {
  constexpr std::string_view kUnix = "unix:", kToken = "+token:";
  ListenAddress address;
  std::string_view rest = text;
  if (const size_t token = rest.find(kToken); token != std::string_view::npos) {
    address.token_file = rest.substr(token + kToken.size());
    rest = rest.substr(0, token);
    if (address.token_file.empty()) return Wrong(text, "no file is given after token:");
  }
  if (rest.substr(0, kUnix.size()) == kUnix) {
    address.unix_path = rest.substr(kUnix.size());
    if (address.unix_path.empty()) return Wrong(text, "no path is given after unix:");
    return address;
  }
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return Wrong(text, "not ADDRESS:PORT or unix:PATH");
  address.host = rest.substr(0, colon);
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host == "localhost") address.host = "127.0.0.1";
  if (!IsNumeric(address.host)) return Wrong(text, "the address is not numeric, such as 127.0.0.1");
  uint32_t port = 0, rank = 0;
  if (!absl::SimpleAtoi(std::string(rest.substr(colon + 1)), &port) || port > UINT16_MAX)
    return Wrong(text, "the port must be from 0 to 65535");
  if (port != 0 && absl::SimpleAtoi(local_rank, &rank)) port += rank;
  if (port > UINT16_MAX) return Wrong(text, "the port plus the local rank is above 65535");
  address.port = static_cast<uint16_t>(port);
  address.is_loopback = IsLoopback(address.host);
  if (!address.is_loopback && address.token_file.empty())
    return Wrong(text, "an address that others can reach needs a token: ADDRESS:PORT+token:FILE");
  return address;
}

absl::StatusOr<std::string> ReadToken(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("the token's file ", file));
  struct stat st = {};
  char bytes[kMaxTokenBytes];
  const bool is_good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  const ssize_t size = is_good ? read(fd, bytes, sizeof(bytes)) : -1;
  close(fd);
  if (size < 0)
    return absl::FailedPreconditionError(absl::StrCat("the token's file ", file, " is not a file"));
  if ((st.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the token's file ", file, " can be read by other users. Fix: chmod 600 ", file));
  }
  const std::string_view text(bytes, static_cast<size_t>(size));
  const std::string_view token = text.substr(0, text.find_first_of("\r\n"));
  if (token.size() < kMinTokenBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the token in ", file, " is shorter than ", kMinTokenBytes, " characters"));
  }
  return std::string(token);
}

}  // namespace gmt::metrics
