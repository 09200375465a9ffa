#include "format/byte_source.h"

#include <fcntl.h>
#include <poll.h>
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

constexpr int kWriterWaitMs = 5000;

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

// Returns an error for what is neither a regular file nor a pipe.
absl::Status CheckKind(mode_t mode, const std::string& path) {
  if (S_ISREG(mode) || S_ISFIFO(mode)) return absl::OkStatus();
  const char* what = S_ISDIR(mode) ? "a folder" : S_ISSOCK(mode) ? "a socket" : "a device";
  return absl::InvalidArgumentError(absl::StrCat(path, " is ", what, "; expected a file"));
}

// Reads a pipe that was opened with O_NONBLOCK, so that a missing writer is noticed.
class PipeReader {
 public:
  PipeReader(int fd, const std::string& path, const HeadCheck& check)
      : fd_(fd), path_(path), check_(check) {}

  absl::Status ReadToEnd(std::string* bytes) {
    for (bool ended = false; !ended;) {
      absl::Status status = ReadMore(&ended);
      if (status.ok() && (ended || bytes_.size() >= kFileHeadBytes)) status = CheckHead();
      if (!status.ok()) return status;
    }
    *bytes = std::move(bytes_);
    return absl::OkStatus();
  }

 private:
  absl::Status ReadMore(bool* ended) {
    char buffer[1 << 16];
    const ssize_t got = read(fd_, buffer, sizeof buffer);
    if (got > 0) return Append({buffer, static_cast<size_t>(got)});
    if (got == 0) return AwaitWriter(ended);
    if (errno == EAGAIN) Await(-1);
    return errno == EAGAIN || errno == EINTR ? absl::OkStatus() : Failed("read", path_, errno);
  }

  absl::Status Append(absl::string_view bytes) {
    if (bytes_.size() + bytes.size() > kMaxPipeBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          path_, ": more than 1 GiB came through this pipe. Write it to a file first"));
    }
    absl::StrAppend(&bytes_, bytes);
    return absl::OkStatus();
  }

  // A pipe whose writer has not come yet reads like one whose writer has gone.
  absl::Status AwaitWriter(bool* ended) {
    *ended = !bytes_.empty();
    if (*ended) return absl::OkStatus();
    if (std::exchange(awaited_, true)) {
      return absl::UnavailableError(
          absl::StrCat(path_, " is a pipe into which no program writes. Start that program first"));
    }
    Await(kWriterWaitMs);
    return absl::OkStatus();
  }

  void Await(int timeout_ms) {
    const int error = errno;
    struct pollfd pipe = {fd_, POLLIN, 0};
    poll(&pipe, 1, timeout_ms);
    errno = error;
  }

  absl::Status CheckHead() {
    if (check_ == nullptr || std::exchange(checked_, true)) return absl::OkStatus();
    return check_(absl::string_view(bytes_).substr(0, kFileHeadBytes));
  }

  const int fd_;
  const std::string& path_;
  const HeadCheck& check_;
  std::string bytes_;
  bool awaited_ = false, checked_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> BytesInMemory(std::string bytes) {
  return std::make_unique<MemorySource>(std::move(bytes));
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(absl::string_view path,
                                                     const HeadCheck& check) {
  const std::string name(path);
  // Opening a device may already have an effect.
  struct stat info = {};
  if (stat(name.c_str(), &info) != 0) return Failed("open", name, errno);
  if (absl::Status status = CheckKind(info.st_mode, name); !status.ok()) return status;
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Failed("open", name, errno);
  absl::Status status =
      fstat(fd, &info) == 0 ? CheckKind(info.st_mode, name) : Failed("stat", name, errno);
  if (status.ok() && S_ISREG(info.st_mode)) {
    return std::unique_ptr<ByteSource>(
        new FileSource(fd, static_cast<uint64_t>(info.st_size), name));
  }
  std::string bytes;
  if (status.ok()) status = PipeReader(fd, name, check).ReadToEnd(&bytes);
  close(fd);
  if (!status.ok()) return status;
  return BytesInMemory(std::move(bytes));
}

}  // namespace gmt::format
