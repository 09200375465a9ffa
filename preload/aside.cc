#include "preload/aside.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

namespace gmt::preload {
namespace {

constexpr size_t kStack = 256 << 10;  // the loader and names of files want tens of KiB
constexpr size_t kGuard = 4096;
constexpr int kOurs[] = {SIGPIPE, SIGXFSZ};

// As the kernel takes it: libc's functions leave out the signals that it keeps for itself.
void SetMask(const sigset_t* mask, sigset_t* before) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, before, sizeof(uint64_t));
}

struct Work {
  void (*run)(void*);
  void* argument;
};

// makecontext passes ints: a pointer travels in two of them.
void Start(unsigned high, unsigned low) {
  const auto* work = reinterpret_cast<const Work*>(uint64_t{high} << 32 | low);
  work->run(work->argument);
}

}  // namespace

HeldSignals::HeldSignals() {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  sigset_t all;
  memset(&all, 0xff, sizeof(all));
  sigemptyset(&before_);
  SetMask(&all, &before_);
  sigpending(&pending_);
}

HeldSignals::~HeldSignals() {
  const int saved = errno;
  for (const int signal : kOurs) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    const timespec now = {0, 0};
    if (sigismember(&pending_, signal) == 0) sigtimedwait(&one, nullptr, &now);
  }
  SetMask(&before_, nullptr);
  pthread_setcancelstate(cancel_state_, nullptr);
  errno = saved;
}

bool RunAside(void (*run)(void*), void* argument) {
  const HeldSignals held;
  void* memory = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  mprotect(memory, kGuard, PROT_NONE);
  ucontext_t here, aside;
  getcontext(&aside);
  aside.uc_stack.ss_sp = memory;
  aside.uc_stack.ss_size = kGuard + kStack;
  aside.uc_link = &here;
  const Work work = {run, argument};
  const uint64_t at = reinterpret_cast<uint64_t>(&work);
  makecontext(&aside, reinterpret_cast<void (*)()>(Start), 2, static_cast<unsigned>(at >> 32),
              static_cast<unsigned>(at));
  swapcontext(&here, &aside);
  munmap(memory, kGuard + kStack);
  return true;
}

}  // namespace gmt::preload
