#include "collector/inject/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gmt::inject {
namespace {

absl::Status Failure(const std::string& path, int error) {
  const std::string message = absl::StrCat(path, ": ", std::strerror(error));
  if (error == ENOENT || error == ESRCH) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failure(path, errno);
  std::string text;
  char buffer[16384];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof(buffer))) > 0) text.append(buffer, static_cast<size_t>(n));
  const int error = errno;
  close(fd);
  if (n < 0) return Failure(path, error);
  return text;
}

std::string_view StatusField(std::string_view status, std::string_view name) {
  while (!status.empty()) {
    const std::string_view line = status.substr(0, status.find('\n'));
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':')
      return Trimmed(line.substr(name.size() + 1));
    status.remove_prefix(std::min(line.size() + 1, status.size()));
  }
  return {};
}

}  // namespace gmt::inject
