#include "collector/session_claim.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gmt::collector {
namespace {

absl::Status Unusable(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("the session cannot be read: ", why));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionClaim>> SessionClaim::Take(int fd) {
  const int own = open(absl::StrCat("/proc/self/fd/", fd).c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) return Unusable(std::strerror(errno));
  if (flock(own, LOCK_EX | LOCK_NB) != 0) {
    close(own);
    return absl::AlreadyExistsError("another collector reads this session");
  }
  session::OpenedSession opened = session::OpenSession(own);
  if (!opened.map) {
    const char* why = opened.error == nullptr ? "it cannot be mapped" : opened.error;
    session::CloseSession(&opened);
    close(own);
    return Unusable(why);
  }
  opened.map.control().collector_pid.store(static_cast<uint32_t>(getpid()),
                                           std::memory_order_release);
  return std::unique_ptr<SessionClaim>(new SessionClaim(own, opened));
}

SessionClaim::~SessionClaim() {
  opened_.map.control().collector_pid.store(0, std::memory_order_release);
  session::CloseSession(&opened_);
  close(fd_);
}

// A session's directory is where this process looks for sessions, or wherever the caller has opened
// it by name.
bool SessionClaim::FindName(char (&path)[kPathSize]) const {
  if (session::FindSessionName(fd_, opened_.map.header(), path)) return true;
  const ssize_t n = readlink(absl::StrCat("/proc/self/fd/", fd_).c_str(), path, sizeof(path) - 1);
  if (n < 0) return false;
  path[n] = '\0';
  struct stat named, open_file;
  return lstat(path, &named) == 0 && fstat(fd_, &open_file) == 0 &&
         named.st_ino == open_file.st_ino && named.st_dev == open_file.st_dev;
}

absl::Status SessionClaim::RemoveName() {
  char path[kPathSize];
  if (!FindName(path)) return absl::OkStatus();  // a memfd, or removed already
  if (unlink(path) != 0) return Unusable(std::strerror(errno));
  return absl::OkStatus();
}

}  // namespace gmt::collector
