#include "collector/output/output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gmt::collector {
namespace {

constexpr int kMaxAttempts = 10000;  // numbers to try in run.N.gmt

absl::Status Failed(absl::string_view what, int error) {
  const std::string message = absl::StrCat(what, ": ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT || error == EFBIG
             ? absl::ResourceExhaustedError(message)
             : absl::UnavailableError(message);
}

// Returns `path` with ".n" before its extension; unchanged for 0.
std::string Numbered(const std::string& path, int n) {
  if (n == 0) return path;
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  const bool has_extension =
      dot != std::string::npos && (slash == std::string::npos || dot > slash);
  const size_t stem = has_extension ? dot : path.size();
  return absl::StrCat(path.substr(0, stem), ".", n, path.substr(stem));
}

}  // namespace

OutputCalls CallsOfFile(int fd) {
  OutputCalls calls;
  calls.write = [fd](const char* bytes, size_t size) { return write(fd, bytes, size); };
  calls.stat = [fd](OutputCalls::State* state) {
    struct stat st;
    if (fstat(fd, &st) != 0) return -1;
    state->size = static_cast<uint64_t>(st.st_size);
    state->has_name = st.st_nlink > 0;
    state->is_file = S_ISREG(st.st_mode);
    return 0;
  };
  calls.sync = [fd] { return fdatasync(fd); };
  return calls;
}

absl::Status OutputFile::Append(absl::string_view bytes) {
  const bool was_stalled = stalled();
  kept_.append(bytes.data(), bytes.size());
  if (!was_stalled && !Retry().ok()) ++stalls_;
  return absl::OkStatus();
}

absl::Status OutputFile::Retry() {
  size_t done = 0;
  int error = 0;
  while (done < kept_.size() && error == 0) {
    const ssize_t n = calls_.write(kept_.data() + done, kept_.size() - done);
    if (n > 0) done += static_cast<size_t>(n);
    if (n <= 0 && !(n < 0 && errno == EINTR)) error = n == 0 ? ENOSPC : errno;
  }
  kept_.erase(0, done);
  written_ += done;
  if (error == 0) return absl::OkStatus();
  stall_reason_ = std::strerror(error);
  return Failed("the recording cannot be written", error);
}

absl::Status OutputFile::Check() {
  OutputCalls::State state;
  if (calls_.stat(&state) != 0 || !state.is_file) return absl::OkStatus();
  if (!state.has_name) return absl::DataLossError("was deleted while it was written");
  if (state.size < written_) {
    return absl::DataLossError(
        absl::StrCat("was cut to ", state.size, " bytes while it was written"));
  }
  return absl::OkStatus();
}

absl::Status OutputFile::SyncToDisk() {
  while (calls_.sync() != 0) {
    if (errno == EINVAL || errno == ENOTSUP || errno == EROFS) break;  // cannot be synced
    if (errno != EINTR) return Failed("the recording may not be completely on disk", errno);
  }
  return absl::OkStatus();
}

std::string PathOfDescriptor(int fd) {
  char path[PATH_MAX] = {};
  const ssize_t n = readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), path, sizeof(path) - 1);
  if (n <= 0 || path[0] != '/') return "";
  return std::string(absl::StripSuffix(path, " (deleted)"));
}

absl::StatusOr<NextOutput> CreateNextOutput(int fd) {
  const std::string path = PathOfDescriptor(fd);
  struct stat old;
  if (path.empty() || fstat(fd, &old) != 0)
    return absl::FailedPreconditionError("the recording is not a file");
  NextOutput next;
  for (int n = 0; n < kMaxAttempts; ++n) {
    next.path = Numbered(path, n);
    next.fd = open(next.path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW,
                   old.st_mode & 0777);
    if (next.fd < 0 && errno == EEXIST) continue;
    if (next.fd < 0) return Failed(next.path, errno);
    flock(next.fd, LOCK_EX | LOCK_NB);
    return next;
  }
  return absl::AlreadyExistsError(absl::StrCat(path, ": no free name beside it"));
}

}  // namespace gmt::collector
