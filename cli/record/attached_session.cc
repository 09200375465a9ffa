#include "cli/record/attached_session.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "collector/inject/proc_file.h"
#include "collector/sessions/session_search.h"
#include "session/attach.h"
#include "session/layout.h"

namespace gmt::cli {
namespace {

using collector::SessionState;
using collector::SessionSummary;

// Returns the session in `folder` whose file has this inode, or "" if there is none. A session gets
// its name when it is complete, so the mapped path may be an earlier one.
std::string SessionIn(const std::string& folder, uint64_t inode) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    struct stat st;
    const std::string path = entry.path().string();
    if (absl::EndsWith(path, ".session") && lstat(path.c_str(), &st) == 0 && st.st_ino == inode)
      return path;
  }
  return "";
}

// Returns the sessions that a process has mapped, as paths that this program can open.
std::vector<std::string> MappedSessions(const inject::TargetInfo& target) {
  const std::string root =
      target.own_mount_namespace ? "" : absl::StrCat("/proc/", target.pid, "/root");
  std::vector<std::string> paths;
  for (const inject::Mapping& m : target.map) {
    if (!m.shared || m.inode == 0 || m.path.empty() || m.path.front() != '/') continue;
    std::string path = SessionIn(absl::StrCat(root, m.path.substr(0, m.path.rfind('/'))), m.inode);
    // A session without a name can be opened only by the root user of the machine.
    if (absl::StartsWith(m.path, "/memfd:gpumemtrace")) {
      path = absl::StrCat("/proc/", target.pid, "/map_files/", absl::Hex(m.start), "-",
                          absl::Hex(m.end));
    }
    if (!path.empty() && std::find(paths.begin(), paths.end(), path) == paths.end())
      paths.push_back(path);
  }
  return paths;
}

// Returns whether the process of a session has ended, and the pid may belong to another one now.
bool IsLeftOver(SessionState state) {
  return state == SessionState::kOrphaned || state == SessionState::kCollected ||
         state == SessionState::kOtherBoot;
}

// Finds the sessions among those of this user. For a process whose mappings cannot be read.
std::vector<std::string> ListedSessions(const inject::TargetInfo& target) {
  std::vector<std::string> paths;
  if (target.inner_pid != target.pid) return paths;
  for (const SessionSummary& s : collector::FindSessions()) {
    if (s.pid == static_cast<uint64_t>(target.pid) && !IsLeftOver(s.state)) paths.push_back(s.path);
  }
  return paths;
}

bool IsOf(const session::Header& header, const inject::TargetInfo& target) {
  return header.pid == static_cast<uint64_t>(target.inner_pid) &&
         header.start_ticks == session::StartTicks(static_cast<uint64_t>(target.pid)) &&
         (header.pid_namespace == 0 || target.pid_namespace == 0 ||
          header.pid_namespace == target.pid_namespace);
}

absl::Status CannotOpen(const std::string& path, int error) {
  const std::string message = absl::StrCat(path, ": ", std::strerror(error));
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::NotFoundError(message);
}

// Returns the value of the option `name` in the command line of a process.
std::string ArgumentOf(pid_t pid, const char* name) {
  const absl::StatusOr<std::string> words =
      inject::ReadProcFile(absl::StrCat("/proc/", pid, "/cmdline"));
  if (!words.ok()) return {};
  const std::string wanted = absl::StrCat(std::string(1, '\0'), name, std::string(1, '\0'));
  const size_t at = words->find(wanted);
  return at == std::string::npos ? "" : std::string(words->c_str() + at + wanted.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttachedSession>> AttachedSession::Open(
    const std::string& path, const inject::TargetInfo& target) {
  const int fd = collector::OpenSessionFile(path);
  if (fd < 0) return CannotOpen(path, errno);
  session::OpenedSession opened = session::OpenSession(fd);
  if (!opened.map || !IsOf(opened.map.header(), target)) {
    const std::string why =
        opened.error != nullptr ? opened.error : "it is the session of another process";
    if (opened.map) session::CloseSession(&opened);
    close(fd);
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", why));
  }
  return std::unique_ptr<AttachedSession>(new AttachedSession(path, fd, opened, target.pid));
}

absl::StatusOr<std::unique_ptr<AttachedSession>> AttachedSession::OfProcess(
    const inject::TargetInfo& target) {
  std::vector<std::string> paths = MappedSessions(target);
  // A session that the process has not mapped belongs to the program that it ran before an exec.
  if (target.maps_errno != 0) paths = ListedSessions(target);
  absl::Status problem =
      absl::NotFoundError(absl::StrCat("process ", target.pid, " has no session"));
  for (const std::string& path : paths) {
    auto session = Open(path, target);
    if (session.ok()) return session;
    if (!absl::IsNotFound(session.status())) problem = session.status();
  }
  return problem;
}

AttachedSession::~AttachedSession() {
  session::CloseSession(&session_);
  close(fd_);
}

bool AttachedSession::has_attach_gate() const {
  return control().attach_gate.load() != session::AttachGate::kNone;
}

bool AttachedSession::is_injected() const {
  return control().attach_gate.load() == session::AttachGate::kInjected;
}

bool AttachedSession::is_bypassed() const {
  return is_injected() && control().slots_restored.load() != 0;
}

bool AttachedSession::is_attached() const { return control().attach_wanted.load() != 0; }

bool AttachedSession::is_in_use() const {
  const int own = open(absl::StrCat("/proc/self/fd/", fd_).c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) return false;
  const bool taken = collector::IsClaimed(own);
  close(own);
  return taken;
}

std::string AttachedSession::Recording() const {
  const auto collector = static_cast<pid_t>(control().collector_pid.load());
  const std::string named = collector > 0 ? ArgumentOf(collector, "--output") : "";
  if (!named.empty()) return named;
  const auto summary = collector::SummariseFile(path_);
  return summary.ok() ? summary->output : "";
}

absl::StatusOr<uint32_t> AttachedSession::Ask(const std::string& options) {
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", pid_, ": another program is using its session ", path_));
  }
  const uint32_t number = session::RequestAttach(&control(), options);
  flock(fd_, LOCK_UN);
  if (number != 0) return number;
  return NotDetachedYet();
}

absl::Status AttachedSession::NotDetachedYet() const {
  return absl::FailedPreconditionError(
      absl::StrCat("process ", pid_,
                   " has not detached from its last recording yet: it does so at its next GPU "
                   "call. Attach again after that"));
}

void AttachedSession::Withdraw(uint32_t number) { session::EndAttach(&control(), number); }

void AttachedSession::WithdrawWithoutCollector(uint32_t number) {
  const bool locked = flock(fd_, LOCK_EX | LOCK_NB) == 0;
  // Without a collector the process itself frees the memory, however late it sees the request.
  if (locked) control().collector_pid.store(0);
  session::EndAttach(&control(), number);
  if (!locked) return;
  session::ReleaseSections(fd_, session_.map);
  flock(fd_, LOCK_UN);
}

}  // namespace gmt::cli
