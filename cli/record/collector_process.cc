#include "cli/record/collector_process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "cli/install.h"

namespace gmt::cli {
namespace {

// Runs in the child, between fork and exec.
[[noreturn]] void Become(const char* program, char* const* arguments, int complaints,
                         std::initializer_list<int> inherited) {
  setsid();
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(complaints, STDERR_FILENO);
  for (const int fd : inherited) fcntl(fd, F_SETFD, 0);
  unsetenv("LD_PRELOAD");
  unsetenv("GPUMEMTRACE_RUN_LOG");
  execv(program, arguments);
  const std::string why = absl::StrCat(program, ": ", std::strerror(errno), "\n");
  (void)!write(STDERR_FILENO, why.data(), why.size());
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CollectorProcess>> CollectorProcess::Start(
    const AttachedSession& session, const ClaimedOutput& output, pid_t target) {
  absl::StatusOr<std::string> program = CollectorProgram();
  if (!program.ok()) return program.status();
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, target, 0));
  if (pidfd < 0 && errno == ESRCH)
    return absl::NotFoundError(absl::StrCat("process ", target, " has ended"));
  std::string words[] = {*program,
                         "--session",
                         session.path(),
                         "--session-fd",
                         absl::StrCat(session.fd()),
                         "--output",
                         output.path(),
                         "--output-fd",
                         absl::StrCat(output.fd()),
                         "--target-fd",
                         absl::StrCat(pidfd)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  if (pidfd < 0) arguments.resize(arguments.size() - 2);
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return absl::UnavailableError(absl::StrCat("cannot create a pipe: ", std::strerror(errno)));
  const pid_t child = fork();
  if (child == 0)
    Become(program->c_str(), arguments.data(), ends[1], {session.fd(), output.fd(), pidfd});
  close(ends[1]);
  if (pidfd >= 0) close(pidfd);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  if (child > 0) return std::unique_ptr<CollectorProcess>(new CollectorProcess(child, ends[0]));
  close(ends[0]);
  return absl::UnavailableError(
      absl::StrCat(*program, " cannot be started: ", std::strerror(errno)));
}

CollectorProcess::~CollectorProcess() { close(complaints_); }

bool CollectorProcess::HasEnded() {
  int status;
  if (ended_ || waitpid(pid_, &status, WNOHANG) != pid_) return ended_;
  ended_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

bool CollectorProcess::WaitForEnd(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!HasEnded()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    usleep(2000);
  }
  return true;
}

std::string CollectorProcess::Complaint() {
  char text[2048];
  const ssize_t n = read(complaints_, text, sizeof(text));
  std::string complaint(text, n > 0 ? static_cast<size_t>(n) : 0);
  while (!complaint.empty() && complaint.back() == '\n') complaint.pop_back();
  return complaint;
}

}  // namespace gmt::cli
