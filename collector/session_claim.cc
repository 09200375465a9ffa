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
    session::CloseSession(&opened);
    close(own);
    return Unusable(opened.error == nullptr ? "it cannot be mapped" : opened.error);
  }
  opened.map.control().collector_pid.store(static_cast<uint32_t>(getpid()), std::memory_order_release);
  return std::unique_ptr<SessionClaim>(new SessionClaim(own, opened));
}

SessionClaim::~SessionClaim() {
  opened_.map.control().collector_pid.store(0, std::memory_order_release);
  session::CloseSession(&opened_);
  close(fd_);
}

absl::Status SessionClaim::RemoveName() {
  char path[PATH_MAX + 100];
  if (!session::FindSessionName(fd_, opened_.map.header(), path)) return absl::OkStatus();  // a memfd, or removed already
  if (unlink(path) != 0) return Unusable(std::strerror(errno));
  return absl::OkStatus();
}

}  // namespace gmt::collector
