#include "collector/inject/traced_thread.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gmt::inject {

absl::StatusOr<std::unique_ptr<TracedThread>> TracedThread::Seize(pid_t thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0)
    return std::unique_ptr<TracedThread>(new TracedThread(thread));
  const std::string message =
      absl::StrCat("thread ", thread, " cannot be traced: ", std::strerror(errno));
  if (errno == ESRCH) return absl::NotFoundError(message);
  return absl::PermissionDeniedError(message);
}

TracedThread::~TracedThread() { Release(); }

bool TracedThread::Stop(std::chrono::milliseconds patience) {
  if (!traced_) return false;
  if (stopped_) return true;
  if (ptrace(PTRACE_INTERRUPT, id_, nullptr, nullptr) != 0) return false;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    int status;
    const pid_t changed = waitpid(id_, &status, __WALL | WNOHANG);
    if (changed < 0 || (changed > 0 && !WIFSTOPPED(status))) {
      traced_ = false;
      return false;
    }
    if (changed > 0) {
      if (status >> 16 == PTRACE_EVENT_STOP) return stopped_ = true;
      // A pending signal. Deliver it; our stop comes next.
      const long signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
      ptrace(PTRACE_CONT, id_, nullptr, signal);
      continue;
    }
    if (std::chrono::steady_clock::now() > deadline) return false;
    usleep(20);
  }
}

void TracedThread::Release() {
  if (traced_ && stopped_) ptrace(PTRACE_DETACH, id_, nullptr, nullptr);
  // A thread that has not stopped cannot be detached; the kernel does so when this process ends.
  if (stopped_) traced_ = false;
  stopped_ = false;
}

bool TracedThread::SetSignalMask(uint64_t mask) const {
  return ptrace(PTRACE_SETSIGMASK, id_, sizeof(mask), &mask) == 0;
}

}  // namespace gmt::inject
