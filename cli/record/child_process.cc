#include "cli/record/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <iterator>

namespace gmt::cli {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};

std::atomic<pid_t> forward_to{0};
struct sigaction before_forwarding[std::size(kForwarded)];

void Forward(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const pid_t child = forward_to.load();
  // The kernel sends signals from the terminal to the whole foreground process group, so the child
  // already has them.
  if (child > 0 && info->si_code != SI_KERNEL) kill(child, signal);
  errno = saved;
}

void ForwardSignals(pid_t child) {
  forward_to = child;
  struct sigaction action = {};
  action.sa_sigaction = Forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (size_t i = 0; i < std::size(kForwarded); ++i)
    sigaction(kForwarded[i], &action, &before_forwarding[i]);
}

void StopForwarding() {
  forward_to = 0;
  for (size_t i = 0; i < std::size(kForwarded); ++i)
    sigaction(kForwarded[i], &before_forwarding[i], nullptr);
}

[[noreturn]] void Execute(const std::vector<std::string>& command,
                          const ChildProcess::Environment& environment, int error_pipe) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const int error = errno;
  (void)!write(error_pipe, &error, sizeof(error));
  _exit(127);
}

}  // namespace

int ChildExit::ShellCode() const {
  if (!started) return exec_errno == ENOENT ? 127 : 126;
  return signalled ? 128 + code : code;
}

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Environment& environment,
                           Output output) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    exec_errno_ = errno;
    return;
  }
  // Block the signals until the child's PID is known.
  sigset_t forwarded, before;
  sigemptyset(&forwarded);
  for (const int signal : kForwarded) sigaddset(&forwarded, signal);
  sigprocmask(SIG_BLOCK, &forwarded, &before);
  pid_ = fork();
  if (pid_ == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (output == Output::kStandardError) dup2(STDERR_FILENO, STDOUT_FILENO);
    Execute(command, environment, fds[1]);
  }
  if (pid_ < 0) exec_errno_ = errno;
  if (pid_ > 0) ForwardSignals(pid_);
  sigprocmask(SIG_SETMASK, &before, nullptr);

  close(fds[1]);
  if (pid_ > 0) {  // end of file means that exec succeeded and closed the pipe
    while (read(fds[0], &exec_errno_, sizeof(exec_errno_)) < 0 && errno == EINTR) {
    }
  }
  close(fds[0]);
}

ChildExit ChildProcess::Wait() {
  ChildExit exit;
  exit.exec_errno = exec_errno_;
  if (pid_ <= 0) return exit;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  StopForwarding();
  exit.started = exec_errno_ == 0;
  exit.signalled = WIFSIGNALED(status);
  exit.code = exit.signalled ? WTERMSIG(status) : WEXITSTATUS(status);
  return exit;
}

}  // namespace gmt::cli
