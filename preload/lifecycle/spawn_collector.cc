#include "preload/lifecycle/spawn_collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/layout.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

extern char** environ;

namespace gmt::preload {
namespace {

constexpr size_t kStack = 64 << 10;  // for each of the two clones
constexpr int kCloneFlags = CLONE_VM | CLONE_VFORK | CLONE_UNTRACED;

// Everything that the two clones need, prepared beforehand: they share our memory and may only make
// system calls.
struct Plan {
  const char* path;
  char** environment;
  char* argv[2];
  int fds[3];  // session, target's pidfd, recording, in the order of their numbers in the collector
  char* second_stack;
  volatile int error;
};

// The kernel's struct sigaction on 64-bit machines. Used directly, because libc's function would
// touch state that is shared with the target.
struct KernelSigaction {
  void* handler;
  unsigned long flags;
  void* restorer;
  unsigned long mask;
};

void ResetSignals() {
  const KernelSigaction by_default = {};
  for (int signal = 1; signal <= 64; ++signal) {
    syscall(SYS_rt_sigaction, signal, &by_default, nullptr, sizeof(by_default.mask));
  }
  const unsigned long none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof(none));
}

// The collector must not delay a target of real-time priority.
void LeaveRealTime() {
  const long policy = syscall(SYS_sched_getscheduler, 0) & ~SCHED_RESET_ON_FORK;
  if (policy != SCHED_FIFO && policy != SCHED_RR) return;
  const sched_param none = {};
  syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
}

// Closes everything from `first` up, if the kernel has no close_range.
void CloseFromList(unsigned first) {
  const long dir =
      syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (dir < 0) return;
  char buffer[2048];
  for (long n; (n = syscall(SYS_getdents64, dir, buffer, sizeof(buffer))) > 0;) {
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      unsigned fd = 0;
      const char* p = entry->d_name;
      for (; *p >= '0' && *p <= '9'; ++p) fd = fd * 10 + static_cast<unsigned>(*p - '0');
      if (*p == '\0' && fd >= first && static_cast<long>(fd) != dir) syscall(SYS_close, fd);
      at += entry->d_reclen;
    }
  }
}

// Moves the three descriptors to their final numbers, by way of higher numbers so that they do not
// overwrite each other.
bool PlaceDescriptors(const int (&fds)[3]) {
  constexpr int kFirst = session::kSessionFd;
  static_assert(session::kTargetPidFd == kFirst + 1 && session::kOutputFd == kFirst + 2);
  long lifted[3];
  for (int i = 0; i < 3; ++i)
    lifted[i] = fds[i] < 0 ? -1 : syscall(SYS_fcntl, fds[i], F_DUPFD, kFirst + 3);
  for (int i = 0; i < 3; ++i) {
    if (lifted[i] < 0) {
      syscall(SYS_close, kFirst + i);
    } else if (syscall(SYS_dup3, lifted[i], kFirst + i, 0) < 0) {
      return false;
    }
  }
  const long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
  for (int fd = 0; fd < 3; ++fd) {
    if (null >= 0 && null != fd) syscall(SYS_dup3, null, fd, 0);
  }
  if (syscall(SYS_close_range, kFirst + 3, ~0u, 0) != 0) CloseFromList(kFirst + 3);
  return true;
}

int RunCollector(void* argument) {
  Plan* plan = static_cast<Plan*>(argument);
  syscall(SYS_setsid);
  // execve is the last step whose error can still be reported; everything before it must not fail.
  if (PlaceDescriptors(plan->fds)) {
    ResetSignals();
    LeaveRealTime();
    syscall(SYS_execve, plan->path, plan->argv, plan->environment);
  }
  plan->error = errno;
  syscall(SYS_exit, 127);
  return 0;
}

// Returns whether a child, whose start has let us continue, is dying without having executed
// another program: a sandbox may kill a process that calls execve. Both are visible in the kernel's
// flags, the ninth field of /proc/PID/stat.
bool DiedBeforeExec(long pid) {
  char path[32] = "/proc/", text[512];
  char digits[20];
  int n = 0;
  for (long rest = pid; rest != 0; rest /= 10) digits[n++] = static_cast<char>('0' + rest % 10);
  char* end = path + 6;
  while (n > 0) *end++ = digits[--n];
  for (const char c : {'/', 's', 't', 'a', 't', '\0'}) *end++ = c;
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  const long size = syscall(SYS_read, fd, text, sizeof(text));
  syscall(SYS_close, fd);
  long at = size - 1;
  while (at >= 0 && text[at] != ')') --at;  // the name before it may contain spaces
  for (int field = 2; field < 9 && at >= 0 && at < size; ++field) {
    do ++at;
    while (at < size && text[at] != ' ');
  }
  unsigned long flags = 0;
  for (++at; at > 0 && at < size && text[at] >= '0' && text[at] <= '9'; ++at)
    flags = flags * 10 + static_cast<unsigned long>(text[at] - '0');
  constexpr unsigned long kExiting = 0x4, kForkedNoExec = 0x40;
  return (flags & kExiting) != 0 && (flags & kForkedNoExec) != 0;
}

int RunHelper(void* argument) {
  Plan* plan = static_cast<Plan*>(argument);
  const int child = clone(RunCollector, plan->second_stack + kStack, kCloneFlags | SIGCHLD, plan);
  if (child < 0) {
    plan->error = errno;
  } else if (plan->error == 0 && DiedBeforeExec(child)) {
    plan->error = EPERM;
  }
  syscall(SYS_exit, 0);
  return 0;
}

// Returns the environment without LD_*, so that the collector is not traced and does not load the
// target's libraries.
char** CollectorEnvironment(size_t* bytes) {
  size_t count = 0;
  while (environ[count] != nullptr) ++count;
  *bytes = (count + 1) * sizeof(char*);
  void* memory = mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char** kept = static_cast<char**>(memory);
  size_t n = 0;
  for (size_t i = 0; i < count; ++i) {
    if (strncmp(environ[i], "LD_", 3) != 0) kept[n++] = environ[i];
  }
  kept[n] = nullptr;
  return kept;
}

int CloneTwice(Plan* plan, char* first_stack) {
  // A signal handler of the target must not run in the clones.
  const unsigned long all = ~0ul;
  unsigned long before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  const pid_t helper = clone(RunHelper, first_stack + kStack, kCloneFlags, plan);
  int error = helper < 0 ? errno : 0;
  if (helper > 0) {
    while (syscall(SYS_wait4, helper, nullptr, __WCLONE, nullptr) < 0 && errno == EINTR) {
    }
    error = plan->error;
  }
  pthread_setcancelstate(cancel_state, nullptr);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof(before));
  return error;
}

}  // namespace

bool FindCollector(const char* shim_path, char* path, size_t size) {
  const char* own = getenv("GPUMEMTRACE_COLLECTOR");
  if (own != nullptr && *own != '\0') {
    snprintf(path, size, "%s", own);
    return access(path, X_OK) == 0;
  }
  const char* slash = strrchr(shim_path, '/');
  const int directory = slash == nullptr ? 0 : static_cast<int>(slash - shim_path);
  for (const char* place : {"", "/../bin", "/../../bin", "/../libexec"}) {
    snprintf(path, size, "%.*s%s/gpumemtrace-collector", directory, shim_path, place);
    if (access(path, X_OK) == 0) return true;
  }
  return false;
}

int SpawnCollector(const char* path, int session_fd, int pid_fd, int output_fd) {
  size_t environment_bytes;
  char** environment = CollectorEnvironment(&environment_bytes);
  if (environment == nullptr) return errno;
  void* stacks = mmap(nullptr, 2 * kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  int error = stacks == MAP_FAILED ? errno : 0;
  if (error == 0) {
    char* first_stack = static_cast<char*>(stacks);
    Plan plan = {path,
                 environment,
                 {const_cast<char*>("gpumemtrace-collector"), nullptr},
                 {session_fd, pid_fd, output_fd},
                 first_stack + kStack,
                 0};
    error = CloneTwice(&plan, first_stack);
    munmap(stacks, 2 * kStack);
  }
  munmap(environment, environment_bytes);
  return error;
}

}  // namespace gmt::preload
