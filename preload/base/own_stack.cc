#include "preload/base/own_stack.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Calls run(argument) with the stack pointer at `top`, a multiple of 16. Written by hand because
// swapcontext enters the kernel and makes sanitizers print warnings. Unwinders can pass through:
// the frame is found by its frame pointer.
extern "C" __attribute__((visibility("hidden"))) void GmtCallOnStack(void (*run)(void*),
                                                                     void* argument, void* top);
#if defined(__x86_64__)
asm(R"(
  .text
  .hidden GmtCallOnStack
  .globl GmtCallOnStack
  .type GmtCallOnStack, @function
GmtCallOnStack:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
  mov %rdx, %rsp
  mov %rdi, %rax
  mov %rsi, %rdi
  call *%rax
  mov %rbp, %rsp
  pop %rbp
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size GmtCallOnStack, . - GmtCallOnStack
  .previous
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .hidden GmtCallOnStack
  .globl GmtCallOnStack
  .type GmtCallOnStack, %function
GmtCallOnStack:
  .cfi_startproc
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset x29, -16
  .cfi_offset x30, -8
  mov x29, sp
  .cfi_def_cfa_register x29
  mov sp, x2
  mov x3, x0
  mov x0, x1
  blr x3
  mov sp, x29
  .cfi_def_cfa_register sp
  ldp x29, x30, [sp], #16
  .cfi_def_cfa_offset 0
  ret
  .cfi_endproc
  .size GmtCallOnStack, . - GmtCallOnStack
  .previous
)");
#endif

namespace gmt::preload {
namespace {

constexpr size_t kGuard = 4096;
constexpr int kOurs[] = {SIGPIPE, SIGXFSZ};

// Uses the kernel's format: libc's functions leave out the signals that it reserves for itself.
void SetMask(const sigset_t* mask, sigset_t* before) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, before, sizeof(uint64_t));
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

bool RunOnOwnStack(void (*run)(void*), void* argument, size_t stack) {
  const HeldSignals held;
  void* memory = mmap(nullptr, kGuard + stack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  mprotect(memory, kGuard, PROT_NONE);
  GmtCallOnStack(run, argument, static_cast<char*>(memory) + kGuard + stack);
  munmap(memory, kGuard + stack);
  return true;
}

}  // namespace gmt::preload
