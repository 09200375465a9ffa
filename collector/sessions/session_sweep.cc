#include "collector/sessions/session_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "collector/sessions/session_summary.h"
#include "session/session_file.h"

namespace gmt::collector {
namespace {

uint64_t SinceChange(const struct stat& st) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t ns =
      (now.tv_sec - st.st_ctim.tv_sec) * int64_t{1000000000} + (now.tv_nsec - st.st_ctim.tv_nsec);
  return ns > 0 ? static_cast<uint64_t>(ns) : 0;  // no file gets old because a clock was set back
}

// Returns whether the process is alive whose pid a session's name begins with, or the hidden name
// of a session that is being created. Unlike the header, a name cannot be overwritten.
bool ProcessOfNameLives(const char* name) {
  unsigned long long pid = 0, start_ticks = 0;
  if (std::sscanf(name, "%llu-%llu-", &pid, &start_ticks) == 2)
    return session::StartTicks(pid) == start_ticks;
  return std::sscanf(name, ".%llu-", &pid) != 1 || session::StartTicks(pid) != 0;
}

// The identity fields of a header have the same offsets in every release (session/layout.h, L4).
bool ProcessOfHeaderIsGone(int fd) {
  session::Header header;
  return pread(fd, &header, sizeof(header), 0) == static_cast<ssize_t>(sizeof(header)) &&
         ProcessIsGone(header);
}

bool IsDead(int fd, const struct stat& st, const char* name, uint64_t keep_ns) {
  const SessionSummary session = Summarise(fd, name);
  switch (session.state) {
    case SessionState::kCollected:
      return true;
    case SessionState::kOrphaned:
    case SessionState::kOtherBoot:
      return session.idle_ns >= keep_ns;
    case SessionState::kDamaged:
      return !ProcessOfNameLives(name) && SinceChange(st) >= keep_ns;
    case SessionState::kOtherRelease:
      // Its ring may be at another offset. The time of its last event is then too new, or that of
      // the session's start; so the file must be old as well.
      return ProcessOfHeaderIsGone(fd) && session.idle_ns >= keep_ns && SinceChange(st) >= keep_ns;
    case SessionState::kRecording:
    case SessionState::kUnattended:
    case SessionState::kDormant:
    case SessionState::kElsewhere:
      return false;
  }
  return false;
}

// Removes the session if it is dead. Returns whether it was removed.
bool RemoveIfDead(int dir, const char* name, uint64_t keep_ns) {
  const int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat st, named;
  bool removed = false;
  // Check and removal need the same lock. IsClaimed() inside Summarise() converts this lock into a
  // shared one and drops it, so the lock is taken again and the name is checked last.
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
      IsDead(fd, st, name, keep_ns) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
      fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == st.st_ino &&
      named.st_dev == st.st_dev) {
    removed = unlinkat(dir, name, 0) == 0;
    // The socket of a collector that was killed.
    unlinkat(dir, absl::StrCat(name, ".sock").c_str(), 0);
  }
  close(fd);
  return removed;
}

// Whether it is the socket of a collector that was killed and whose session's name is elsewhere.
bool IsDeadSocket(const char* name) {
  pid_t pid;
  int end = 0;
  return std::sscanf(name, "collector-%d.sock%n", &pid, &end) == 1 && name[end] == '\0' &&
         kill(pid, 0) != 0 && errno == ESRCH;
}

bool IsSessionName(const char* name) {
  unsigned long long pid, made;
  int end = 0;
  return absl::EndsWith(name, ".session") ||
         (std::sscanf(name, ".%llu-%llu%n", &pid, &made, &end) == 2 && name[end] == '\0');
}

}  // namespace

std::vector<std::string> RemoveDeadSessions(const std::string& directory, uint64_t keep_ns) {
  std::vector<std::string> removed;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (dir == nullptr) return removed;
  while (const dirent* entry = readdir(dir.get())) {
    if (IsDeadSocket(entry->d_name)) unlinkat(dirfd(dir.get()), entry->d_name, 0);
    if (IsSessionName(entry->d_name) && RemoveIfDead(dirfd(dir.get()), entry->d_name, keep_ns))
      removed.push_back(absl::StrCat(directory, "/", entry->d_name));
  }
  return removed;
}

}  // namespace gmt::collector
