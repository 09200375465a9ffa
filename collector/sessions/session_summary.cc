#include "collector/sessions/session_summary.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/sessions/target.h"
#include "session/session_file.h"

namespace gmt::collector {
namespace {

using session::Control;
using session::Header;

constexpr uint64_t kMaxInfoBytes = 1 << 20;

bool ReadAt(int fd, uint64_t offset, void* out, size_t size) {
  return pread(fd, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

uint64_t Now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * kSecond + static_cast<uint64_t>(t.tv_nsec);
}

// Returns the time of the newest record, or of the session's start if there is no valid record.
uint64_t NewestNs(int fd, const Header& header) {
  uint64_t tail = 0, time_ns = 0;
  const session::Section& ring = header.sections[session::kRing];
  if (!ReadAt(fd, session::kControlOffset + offsetof(Control, tail), &tail, sizeof(tail)) ||
      tail == 0) {
    return header.monotonic_ns;
  }
  const uint64_t slot = ring.offset + ((tail - 1) & (ring.count - 1)) * sizeof(session::Slot);
  if (!ReadAt(fd, slot + offsetof(session::Slot, words), &time_ns, sizeof(time_ns)))
    return header.monotonic_ns;
  return std::max(time_ns, header.monotonic_ns);
}

// Computes ages. In the same boot they use the monotonic clock, which cannot be set; otherwise the
// wall clock.
void FillAges(int fd, const Header& header, SessionSummary* s) {
  s->started_unix_ns = header.realtime_ns;
  const uint64_t newest = NewestNs(fd, header) - header.monotonic_ns;
  const uint64_t now = session::IsThisBoot(header) ? Now(CLOCK_MONOTONIC) : Now(CLOCK_REALTIME);
  const uint64_t began = session::IsThisBoot(header) ? header.monotonic_ns : header.realtime_ns;
  s->age_ns = now > began ? now - began : 0;
  s->idle_ns = s->age_ns > newest ? s->age_ns - newest : 0;
}

void FillInfo(int fd, const Header& header, SessionSummary* s) {
  const session::Section& info = header.sections[session::kInfo];
  std::string text(std::min(info.count, kMaxInfoBytes), '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), static_cast<off_t>(info.offset));
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  const std::pair<std::string_view, std::string*> fields[] = {
      {"output", &s->output},       {"version", &s->version}, {"shim", &s->shim},
      {"collector", &s->collector}, {"run_id", &s->run_id},
  };
  session::ForEachInfo(text, [&](std::string_view name, std::string_view value) {
    for (const auto& [field, target] : fields) {
      if (field == name) *target = value;
    }
    if (name == "arg") s->argv.emplace_back(value);
  });
}

template <typename T>
T ReadControl(int fd, size_t offset) {
  T value = {};
  return ReadAt(fd, session::kControlOffset + offset, &value, sizeof(value)) ? value : T{};
}

SessionState StateOf(int fd, const Header& header) {
  if (IsClaimed(fd)) return SessionState::kRecording;
  if (header.abi_major != session::kAbiMajor) return SessionState::kOtherRelease;
  const bool collected =
      ReadControl<session::Handshake>(fd, offsetof(Control, finished)) == session::Handshake::kDone;
  const bool dormant = ReadControl<session::AttachGate>(fd, offsetof(Control, attach_gate)) !=
                           session::AttachGate::kNone &&
                       ReadControl<uint32_t>(fd, offsetof(Control, attach_now)) == 0;
  if (!ProcessIsGone(header)) {
    if (!IsThisPidNamespace(header)) return SessionState::kElsewhere;
    return dormant ? SessionState::kDormant : SessionState::kUnattended;
  }
  if (collected || dormant) return SessionState::kCollected;
  return session::IsThisBoot(header) ? SessionState::kOrphaned : SessionState::kOtherBoot;
}

}  // namespace

const char* StateName(SessionState state) {
  switch (state) {
    case SessionState::kRecording:
      return "recording";
    case SessionState::kUnattended:
      return "unattended";
    case SessionState::kDormant:
      return "dormant";
    case SessionState::kOrphaned:
      return "orphaned";
    case SessionState::kCollected:
      return "collected";
    case SessionState::kOtherBoot:
      return "other_boot";
    case SessionState::kElsewhere:
      return "elsewhere";
    case SessionState::kOtherRelease:
      return "other_release";
    case SessionState::kDamaged:
      return "damaged";
  }
  return "damaged";
}

int OpenSessionFile(const std::string& path) {
  const int found = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (found < 0) return -1;
  struct stat st;
  int fd = -1;
  if (fstat(found, &st) == 0 && S_ISREG(st.st_mode)) {
    fd = open(absl::StrCat("/proc/self/fd/", found).c_str(), O_RDWR | O_CLOEXEC);
  } else {
    errno = EINVAL;
  }
  const int error = errno;
  close(found);
  errno = error;
  return fd;
}

bool IsClaimed(int fd) {
  if (flock(fd, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  flock(fd, LOCK_UN);
  return false;
}

bool ProcessIsGone(const Header& header) {
  if (!session::IsThisBoot(header)) return true;
  return IsThisPidNamespace(header) && !Target(header, -1).IsAlive();
}

SessionSummary Summarise(int fd, const std::string& path) {
  SessionSummary s;
  s.path = path;
  struct stat st;
  Header header;
  if (fstat(fd, &st) != 0 || !ReadAt(fd, 0, &header, sizeof(header)) ||
      static_cast<uint64_t>(st.st_size) < session::kControlOffset + sizeof(Control)) {
    s.damage = "it is too short to be a session";
    return s;
  }
  s.bytes = static_cast<uint64_t>(st.st_blocks) * 512;
  s.abi_major = header.abi_major;
  const char* wrong = session::CheckHeader(header, static_cast<uint64_t>(st.st_size));
  const bool other_release =
      wrong != nullptr && std::memcmp(header.magic, session::kMagic, sizeof(header.magic)) == 0 &&
      header.byte_order == session::kByteOrder && header.abi_major != session::kAbiMajor;
  if (wrong != nullptr) s.damage = wrong;
  if (wrong != nullptr && !other_release) return s;
  s.pid = header.pid;
  s.state = StateOf(fd, header);
  if (s.state == SessionState::kRecording)
    s.collector_pid = ReadControl<uint32_t>(fd, offsetof(Control, collector_pid));
  FillAges(fd, header, &s);
  FillInfo(fd, header, &s);
  return s;
}

absl::StatusOr<SessionSummary> SummariseFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    const std::string message = absl::StrCat(path, ": ", std::strerror(error));
    return error == EACCES ? absl::PermissionDeniedError(message) : absl::NotFoundError(message);
  }
  struct stat st;
  absl::StatusOr<SessionSummary> result =
      absl::NotFoundError(absl::StrCat(path, " is not a session"));
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
    result = Summarise(fd, path);
    if (st.st_uid != geteuid() && geteuid() != 0) {
      result = absl::PermissionDeniedError(
          absl::StrCat(path, " belongs to user ", st.st_uid, "; only that user can collect it"));
    }
  }
  close(fd);
  return result;
}

}  // namespace gmt::collector
