#include "collector/inject/remote_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::inject {

absl::StatusOr<RemoteMemory> RemoteMemory::Open(pid_t pid) {
  const std::string path = absl::StrCat("/proc/", pid, "/mem");
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd >= 0) return RemoteMemory(fd);
  const std::string message = absl::StrCat(path, ": ", std::strerror(errno));
  if (errno == ENOENT || errno == ESRCH) return absl::NotFoundError(message);
  return absl::PermissionDeniedError(message);
}

RemoteMemory::RemoteMemory(RemoteMemory&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RemoteMemory::~RemoteMemory() {
  if (fd_ >= 0) close(fd_);
}

bool RemoteMemory::Read(uint64_t address, void* out, size_t size) const {
  return pread(fd_, out, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

bool RemoteMemory::Write(uint64_t address, const void* data, size_t size) const {
  return pwrite(fd_, data, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

std::string RemoteMemory::ReadText(uint64_t address, size_t max) const {
  std::string text;
  while (text.size() < max) {
    char part[256];
    // Never reads across a page boundary, because the next page may not be mapped.
    const size_t page_left = 4096 - (address + text.size()) % 4096;
    const size_t n = std::min({sizeof(part), max - text.size(), page_left});
    if (!Read(address + text.size(), part, n)) break;
    const size_t length = strnlen(part, n);
    text.append(part, length);
    if (length < n) break;
  }
  return text;
}

}  // namespace gmt::inject
