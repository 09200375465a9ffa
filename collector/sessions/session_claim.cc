#include "collector/sessions/session_claim.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "collector/sessions/bus_guard.h"
#include "session/attach.h"

namespace gmt::collector {
namespace {

absl::Status Unusable(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("the session cannot be read: ", why));
}

// Readers that only inspect a session hold a shared lock for a moment. A lock held for longer than
// a tenth of a second belongs to a collector.
bool Lock(int fd) {
  constexpr int kAttempts = 20;
  constexpr useconds_t kBetween = 5000;
  for (int i = 0; i < kAttempts; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    usleep(kBetween);
  }
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionClaim>> SessionClaim::Take(int fd) {
  const int own = open(absl::StrCat("/proc/self/fd/", fd).c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) return Unusable(std::strerror(errno));
  if (!Lock(own)) {
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
  // First the attach: a client that sees the collector may end the attach at once.
  const uint32_t attach = AttachUnderWay(opened.map.control());
  opened.map.control().collector_pid.store(static_cast<uint32_t>(getpid()),
                                           std::memory_order_release);
  return std::unique_ptr<SessionClaim>(new SessionClaim(own, opened, attach));
}

SessionClaim::~SessionClaim() {
  session::Control& control = opened_.map.control();
  // Sequentially consistent: either a process that stops recording or ends sees this store, or this
  // collector sees that it has stopped.
  control.collector_pid.store(0, std::memory_order_seq_cst);
  if (release_) session::ReleaseSections(fd_, opened_.map);
  // A process that ended while this collector recorded its last attach has left the name to it. If
  // something was recorded but not completely written, the name stays, so that it can be found.
  if (has_attach_gate() && (release_ || !is_recorded_) &&
      control.closing.load(std::memory_order_seq_cst) == session::Handshake::kDone &&
      control.attach_now.load() == 0) {
    (void)RemoveName();
  }
  BusGuard::Forget(opened_.base, opened_.size);
  BusGuard::Forget(opened_.control, sizeof(session::Control));
  session::CloseSession(&opened_);
  close(fd_);
}

uint32_t SessionClaim::AttachUnderWay(const session::Control& control) {
  const uint32_t now = control.attach_now.load(std::memory_order_acquire);
  return now != 0 ? now : control.attach_wanted.load(std::memory_order_acquire);
}

absl::Status SessionClaim::WaitUntilRecorded(Target* target, Clock* clock,
                                             const std::function<bool()>& stop) {
  constexpr uint64_t kBetween = 20 * kMillisecond;
  const session::Control& control = opened_.map.control();
  // The recording may begin and end between two checks; its data waits for the owner of the claim.
  const auto has_begun = [&] {
    return control.attach_now.load(std::memory_order_acquire) != 0 ||
           (attach_ != 0 && control.attach_last.load(std::memory_order_acquire) == attach_);
  };
  while (!has_begun()) {
    const uint32_t wanted = control.attach_wanted.load(std::memory_order_acquire);
    if (wanted == 0 || stop()) return absl::CancelledError("no client is attached to the process");
    if (control.attach_refused.load(std::memory_order_acquire) == wanted) {
      const auto error = static_cast<int>(control.attach_errno.load(std::memory_order_relaxed));
      return absl::FailedPreconditionError(absl::StrCat(
          "the process cannot record: no shared memory for it: ", std::strerror(error)));
    }
    if (!target->IsAlive())
      return absl::FailedPreconditionError("the process ended before its next GPU call");
    clock->Wait(kBetween);
  }
  is_recorded_ = true;
  // The page is private to this process (session::OpenSession).
  auto* header = static_cast<session::Header*>(opened_.base);
  const uint64_t begin = control.attach_begin_ns.load(std::memory_order_acquire);
  if (begin > header_.monotonic_ns) {
    header->monotonic_ns = begin;
    header->realtime_ns = header_.realtime_ns + (begin - header_.monotonic_ns);
  }
  return absl::OkStatus();
}

bool SessionClaim::IsCut() const {
  struct stat st;
  if (fstat(fd_, &st) == 0 && static_cast<uint64_t>(st.st_size) < opened_.size) return true;
  return BusGuard::MissingPages(opened_.base, opened_.size) +
             BusGuard::MissingPages(opened_.control, sizeof(session::Control)) >
         0;
}

std::string SessionClaim::Path() const {
  char path[kPathSize];
  return FindName(path) ? path : "";
}

// Finds the name in the directories in which this process looks for sessions, or where the caller
// has opened it.
bool SessionClaim::FindName(char (&path)[kPathSize]) const {
  if (session::FindSessionName(fd_, header_, path)) return true;
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
