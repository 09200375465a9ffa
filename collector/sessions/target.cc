#include "collector/sessions/target.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/gmt.pb.h"
#include "session/process_stat.h"
#include "session/session_file.h"

namespace gmt::collector {
namespace {

// From linux/pidfd.h of Linux 6.15, which few machines have as a header: the first 64 bytes, which
// later versions keep.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup_id;
  uint32_t ids[11];   // pid, tgid, ppid and the credentials
  int32_t exit_code;  // a wait status
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kPidfdInfoExit = 1u << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xff, 11, PidfdInfo);

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<int> ZombieStatus(uint64_t pid) {
  constexpr int kExitCode = 52;
  const session::ProcessStat stat(absl::StrCat("/proc/", pid).c_str());
  if (stat.state() != 'Z') return std::nullopt;
  return static_cast<int>(stat.Field(kExitCode));
}

// If the kernel or a sandbox gave the traced process no pidfd, that descriptor is now another file
// of ours, which looks like an ended process. Signal 0 distinguishes them.
bool IsPidfd(int fd) {
  if (fd < 0) return false;
  return syscall(SYS_pidfd_send_signal, fd, 0, nullptr, 0) == 0 ||
         (errno != EBADF && errno != ENOSYS);
}

// Returns the name of the task folder of a thread with this tid in its own PID namespace.
std::string TaskOfInnerTid(const std::string& tasks, uint32_t tid) {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    for (absl::string_view line : absl::StrSplit(ReadFile(task.path() / "status"), '\n')) {
      if (!absl::ConsumePrefix(&line, "NSpid:")) continue;
      const std::vector<absl::string_view> numbers =
          absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
      uint32_t inner;
      if (!numbers.empty() && absl::SimpleAtoi(numbers.back(), &inner) && inner == tid)
        return task.path().filename();
    }
  }
  return "";
}

}  // namespace

bool IsThisPidNamespace(const session::Header& header) {
  struct stat own;
  return header.pid_namespace == 0 || stat("/proc/self/ns/pid", &own) != 0 ||
         own.st_ino == header.pid_namespace;
}

uint64_t PidOfPidfd(const std::string& fdinfo) {
  for (absl::string_view line : absl::StrSplit(fdinfo, '\n')) {
    uint64_t pid;  // -1: ended; 0: of a namespace that is not a child of this one
    if (absl::ConsumePrefix(&line, "Pid:") && absl::SimpleAtoi(line, &pid)) return pid;
  }
  return 0;
}

Target::Target(const session::Header& header, int inherited_pidfd)
    : pid_(header.pid),
      start_ticks_(header.start_ticks),
      pidfd_(IsPidfd(inherited_pidfd) ? inherited_pidfd : -1),
      is_of_this_namespace_(IsThisPidNamespace(header)) {
  if (pidfd_ >= 0) {
    if (!is_of_this_namespace_)
      pid_ = PidOfPidfd(ReadFile(absl::StrCat("/proc/self/fdinfo/", pidfd_)));
    return;
  }
  if (!session::IsThisBoot(header) || !is_of_this_namespace_) pid_ = 0;
  if (!IsSameProcess()) return;
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid_), 0));
}

Target::~Target() {
  if (pidfd_ >= 0) close(pidfd_);
}

bool Target::IsSameProcess() const {
  return pid_ != 0 && session::StartTicks(pid_) == start_ticks_;
}

bool Target::IsAlive() {
  if (pidfd_ < 0) return IsSameProcess();
  pollfd fd = {pidfd_, POLLIN, 0};
  return poll(&fd, 1, 0) == 0;
}

std::optional<gmt::Exit> Target::FindExitStatus() const {
  PidfdInfo info = {};
  info.mask = kPidfdInfoExit;
  if (pidfd_ >= 0 && ioctl(pidfd_, kPidfdGetInfo, &info) == 0 &&
      (info.mask & kPidfdInfoExit) != 0) {
    return ExitFromWaitStatus(info.exit_code, "pidfd");
  }
  if (!IsSameProcess()) return std::nullopt;
  const std::optional<int> status = ZombieStatus(pid_);
  if (!status.has_value()) return std::nullopt;
  return ExitFromWaitStatus(*status, "collector");
}

std::string Target::ThreadName(uint32_t tid) const {
  const std::string tasks = absl::StrCat("/proc/", pid_, "/task/");
  const std::string task = is_of_this_namespace_ ? absl::StrCat(tid) : TaskOfInnerTid(tasks, tid);
  std::string name = task.empty() ? "" : ReadFile(absl::StrCat(tasks, task, "/comm"));
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

gmt::Exit ExitFromWaitStatus(int status, const std::string& known_by) {
  gmt::Exit exit;
  exit.set_kind(WIFSIGNALED(status) ? gmt::Exit::SIGNALLED : gmt::Exit::EXITED);
  exit.set_code(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  exit.set_known_by(known_by);
  return exit;
}

std::optional<gmt::Exit> ExitFromSession(const session::Control& control) {
  const session::ExitKind kind = control.exit_kind.load(std::memory_order_acquire);
  if (kind != session::ExitKind::kExited && kind != session::ExitKind::kSignalled)
    return std::nullopt;
  gmt::Exit exit;
  exit.set_kind(kind == session::ExitKind::kExited ? gmt::Exit::EXITED : gmt::Exit::SIGNALLED);
  exit.set_code(control.exit_code.load(std::memory_order_relaxed));
  exit.set_known_by(control.exit_known_by_parent.load(std::memory_order_relaxed) != 0 ? "run"
                                                                                      : "shim");
  return exit;
}

gmt::Exit FindExit(const Target& target, const session::Control& control, Clock* clock) {
  constexpr uint64_t kReaped = kSecond / 2, kStep = 5 * kMillisecond;
  for (uint64_t waited = 0; waited <= kReaped; waited += kStep) {
    if (const auto exit = ExitFromSession(control)) return *exit;
    if (const auto exit = target.FindExitStatus()) return *exit;
    clock->Wait(kStep);
  }
  gmt::Exit exit;
  exit.set_kind(gmt::Exit::LOST);
  exit.set_known_by("collector");
  return exit;
}

}  // namespace gmt::collector
