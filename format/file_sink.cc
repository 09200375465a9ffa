// Sinks that write to the file system (format/recording_writer.h).

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "format/recording_writer.h"

namespace gmt::format {
namespace {

absl::Status Failed(absl::string_view doing, const std::string& path) {
  const int error = errno;
  const std::string message = absl::StrCat(path, ": ", doing, " failed: ", std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EROFS:
    case EPERM:
      return absl::PermissionDeniedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

class FdSink : public Sink {
 public:
  FdSink(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~FdSink() override { close(fd_); }

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Failed("write", path_);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    // Pipes and /dev/null do not support fdatasync and do not need it.
    if (fdatasync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP)
      return Failed("fdatasync", path_);
    return absl::OkStatus();
  }

 private:
  const int fd_;
  const std::string path_;
};

}  // namespace

std::unique_ptr<Sink> FileDescriptorSink(int fd, absl::string_view path_for_messages) {
  return std::make_unique<FdSink>(fd, std::string(path_for_messages));
}

absl::StatusOr<std::unique_ptr<Sink>> FileSink(absl::string_view path, IfExists if_exists) {
  const std::string name(path);
  const int flags =
      O_WRONLY | O_CREAT | O_CLOEXEC | (if_exists == IfExists::kFail ? O_EXCL : O_TRUNC);
  const int fd = open(name.c_str(), flags, 0666);
  if (fd >= 0) return FileDescriptorSink(fd, path);
  if (errno == EEXIST) {
    return absl::AlreadyExistsError(
        absl::StrCat(name, " exists already. Overwrite it with: --force"));
  }
  return Failed("create", name);
}

}  // namespace gmt::format
