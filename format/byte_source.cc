#include "format/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/read_at.h"

namespace gmt::format {
namespace {

absl::Status Failed(absl::string_view doing, const std::string& path, int error) {
  const std::string message = absl::StrCat(path, ": ", doing, " failed: ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  absl::Status Read(uint64_t offset, uint64_t count, std::string* out) override {
    out->assign(bytes_, std::min<uint64_t>(offset, bytes_.size()), count);
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
};

class FileSource : public ByteSource {
 public:
  FileSource(int fd, uint64_t size, std::string path)
      : fd_(fd), size_(size), path_(std::move(path)) {}
  ~FileSource() override { close(fd_); }
  uint64_t size() const override { return size_; }

  absl::Status Read(uint64_t offset, uint64_t count, std::string* out) override {
    const int error = ReadAt(fd_, size_, offset, count, out);
    return error == 0 ? absl::OkStatus() : Failed("read", path_, error);
  }

 private:
  const int fd_;
  const uint64_t size_;
  const std::string path_;
};

absl::StatusOr<std::string> ReadToEnd(int fd, const std::string& path) {
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path, errno);
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

std::unique_ptr<ByteSource> BytesInMemory(std::string bytes) {
  return std::make_unique<MemorySource>(std::move(bytes));
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(absl::string_view path) {
  const std::string name(path);
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed("open", name, errno);
  struct stat info = {};
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return Failed("stat", name, error);
  }
  if (S_ISREG(info.st_mode)) {
    return std::unique_ptr<ByteSource>(
        new FileSource(fd, static_cast<uint64_t>(info.st_size), name));
  }
  absl::StatusOr<std::string> bytes = ReadToEnd(fd, name);  // fails for a directory, with EISDIR
  close(fd);
  if (!bytes.ok()) return bytes.status();
  return BytesInMemory(*std::move(bytes));
}

}  // namespace gmt::format
