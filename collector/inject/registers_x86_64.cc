// The injector's code for x86-64. Numbers of system calls and the layout of user_regs_struct come
// from the kernel; red zone, stack alignment and registers of a call from the System V psABI.

#include "collector/inject/registers.h"

#if defined(__x86_64__)

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

// The code of the call. rbx points to CallData. The code runs in the last page of some library, so
// relative to itself it accesses only the eight bytes at its end and the eight in the instruction
// before. It waits by yielding, not by sleeping: a sleep would replace the kernel's restart state
// of the sleep in which the thread was stopped and which continues afterwards.
asm(R"(
  .pushsection .rodata.gmt_call, "a", @progbits
  .globl gmt_call_begin, gmt_call_wait, gmt_call_wait_end, gmt_call_sp, gmt_call_pc, gmt_call_end
  .hidden gmt_call_begin, gmt_call_wait, gmt_call_wait_end, gmt_call_sp, gmt_call_pc, gmt_call_end
gmt_call_begin:
  movl $14, %eax                # rt_sigprocmask
  movl $2, %edi                 # SIG_SETMASK
  leaq 0x40(%rbx), %rsi
  leaq 0x38(%rbx), %rdx
  movl $8, %r10d
  syscall
  movq 0x90(%rbx), %rax         # errno_location
  testq %rax, %rax
  jz 1f
  call *%rax
  movq %rax, 0x98(%rbx)
  movl (%rax), %eax
  movl %eax, 0xa0(%rbx)
1:
  movq 0x68(%rbx), %rdi
  movq 0x30(%rbx), %rsi
  call *0x18(%rbx)              # dlopen
  movl $1, %r12d
  testq %rax, %rax
  jz 2f
  movq %rax, %rdi
  movq 0x70(%rbx), %rsi
  call *0x20(%rbx)              # dlsym
  movl $2, %r12d
  testq %rax, %rax
  jz 2f
  movq 0x78(%rbx), %rdi
  movq 0x80(%rbx), %rsi
  movq 0x88(%rbx), %rdx
  call *%rax
  cltq
  movq %rax, 0x10(%rbx)
  movl $3, %r12d
  jmp 4f
2:
  movq 0x28(%rbx), %rax         # dlerror
  testq %rax, %rax
  jz 4f
  call *%rax
  testq %rax, %rax
  jz 4f
  movq %rax, %rsi
  movq 0x80(%rbx), %rdi
  movq 0x88(%rbx), %rcx
3:
  decq %rcx
  jz 4f
  movb (%rsi), %al
  movb %al, (%rdi)
  incq %rsi
  incq %rdi
  testb %al, %al
  jnz 3b
4:
  movq 0x98(%rbx), %rax
  testq %rax, %rax
  jz 5f
  movl 0xa0(%rbx), %ecx
  movl %ecx, (%rax)
5:
  movq %r12, 0x08(%rbx)
  movq $2, (%rbx)               # kReturned
  xorl %r13d, %r13d
gmt_call_wait:
  movl $24, %eax                # sched_yield
  syscall
  movl $228, %eax               # clock_gettime
  movl $1, %edi                 # CLOCK_MONOTONIC
  leaq 0x48(%rbx), %rsi
  syscall
  imulq $1000000000, 0x48(%rbx), %rax
  addq 0x50(%rbx), %rax
  testq %r13, %r13
  jnz 6f
  movq %rax, %r13
6:
  subq %r13, %rax
  cmpq 0x58(%rbx), %rax
  jb gmt_call_wait
gmt_call_wait_end:
  movq $3, (%rbx)               # kLeaving
  movq 0x60(%rbx), %rcx
  movl $-1, %eax
  movl $-1, %edx
  xrstor64 (%rcx)
  movl $14, %eax
  movl $2, %edi
  leaq 0x38(%rbx), %rsi
  xorl %edx, %edx
  movl $8, %r10d
  syscall
  pushq 0x120(%rbx)
  popfq
  movq 0xa8(%rbx), %r15
  movq 0xb0(%rbx), %r14
  movq 0xb8(%rbx), %r13
  movq 0xc0(%rbx), %r12
  movq 0xc8(%rbx), %rbp
  movq 0xd8(%rbx), %r11
  movq 0xe0(%rbx), %r10
  movq 0xe8(%rbx), %r9
  movq 0xf0(%rbx), %r8
  movq 0xf8(%rbx), %rax
  movq 0x100(%rbx), %rcx
  movq 0x108(%rbx), %rdx
  movq 0x110(%rbx), %rsi
  movq 0x118(%rbx), %rdi
  movq 0xd0(%rbx), %rbx
  movabsq $0x1111111111111111, %rsp
gmt_call_sp:
  jmp *gmt_call_pc(%rip)
gmt_call_pc:
  .quad 0
gmt_call_end:
  .popsection
)");

extern "C" const uint8_t gmt_call_begin[], gmt_call_wait[], gmt_call_wait_end[], gmt_call_sp[],
    gmt_call_pc[], gmt_call_end[];

namespace gmt::inject {
namespace {

static_assert(offsetof(CallData, result) == 0x10 && offsetof(CallData, dlopen) == 0x18 &&
              offsetof(CallData, dlopen_mode) == 0x30 && offsetof(CallData, old_mask) == 0x38 &&
              offsetof(CallData, now) == 0x48 && offsetof(CallData, vector) == 0x60 &&
              offsetof(CallData, library) == 0x68 && offsetof(CallData, capacity) == 0x88 &&
              offsetof(CallData, errno_location) == 0x90 && offsetof(CallData, saved) == 0xa8);

constexpr uint64_t kPlainFlags = 0x202;  // interrupts enabled, as always in user mode; else none
constexpr size_t kMaxVectorBytes = 64 << 10;

user_regs_struct General(const Registers& registers) {
  user_regs_struct r = {};
  std::memcpy(&r, registers.general.data(), std::min(sizeof(r), registers.general.size()));
  return r;
}

bool GetSet(pid_t thread, int set, size_t size, std::vector<uint8_t>* bytes) {
  bytes->resize(size);
  iovec vec = {bytes->data(), bytes->size()};
  if (ptrace(PTRACE_GETREGSET, thread, set, &vec) != 0) return false;
  bytes->resize(vec.iov_len);
  return true;
}

bool SetSet(pid_t thread, int set, const std::vector<uint8_t>& bytes) {
  iovec vec = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  return ptrace(PTRACE_SETREGSET, thread, set, &vec) == 0;
}

// Does what the kernel would do for a thread that is stopped in a system call and continues without
// a signal handler: it repeats the call, or makes `restart_syscall`, which knows the remaining
// time. The values are those of include/linux/errno.h that no program sees.
void RewindSyscall(user_regs_struct* r) {
  constexpr int64_t kRestartSys = 512, kRestartNoIntr = 513, kRestartNoHand = 514,
                    kRestartBlock = 516;
  if (static_cast<int64_t>(r->orig_rax) < 0) return;
  constexpr uint64_t kSyscallBytes = 2;
  const int64_t error = -static_cast<int64_t>(r->rax);
  if (error == kRestartSys || error == kRestartNoIntr || error == kRestartNoHand) {
    r->rax = r->orig_rax;
    r->rip -= kSyscallBytes;
  } else if (error == kRestartBlock) {
    r->rax = SYS_restart_syscall;
    r->rip -= kSyscallBytes;
  }
}

}  // namespace

bool IsSupported() { return true; }

uint64_t Registers::pc() const { return General(*this).rip; }
uint64_t Registers::sp() const { return General(*this).rsp; }
int64_t Registers::syscall() const { return static_cast<int64_t>(General(*this).orig_rax); }

bool ReadRegisters(pid_t thread, Registers* registers) {
  return GetSet(thread, NT_PRSTATUS, sizeof(user_regs_struct), &registers->general) &&
         registers->general.size() == sizeof(user_regs_struct) &&
         GetSet(thread, NT_X86_XSTATE, kMaxVectorBytes, &registers->vector);
}

bool WriteGeneralRegisters(pid_t thread, const Registers& registers) {
  return SetSet(thread, NT_PRSTATUS, registers.general);
}

bool WriteVectorRegisters(pid_t thread, const Registers& registers) {
  return SetSet(thread, NT_X86_XSTATE, registers.vector);
}

bool IsFutex(int64_t syscall) { return syscall == SYS_futex; }

bool IsWaiting(int64_t syscall) {
  switch (syscall) {
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_restart_syscall:
    case SYS_futex:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_accept:
    case SYS_accept4:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sched_yield:
      return true;
    default:
      return false;
  }
}

size_t CallCodeSize() { return static_cast<size_t>(gmt_call_end - gmt_call_begin); }

std::vector<uint8_t> MakeCallCode(const Registers& before) {
  std::vector<uint8_t> code(gmt_call_begin, gmt_call_end);
  user_regs_struct r = General(before);
  RewindSyscall(&r);
  const uint64_t sp = r.rsp, pc = r.rip;
  std::memcpy(code.data() + (gmt_call_sp - gmt_call_begin) - sizeof(sp), &sp, sizeof(sp));
  std::memcpy(code.data() + (gmt_call_pc - gmt_call_begin), &pc, sizeof(pc));
  return code;
}

bool IsInWait(uint64_t pc, uint64_t address) {
  return pc >= address + static_cast<uint64_t>(gmt_call_wait - gmt_call_begin) &&
         pc < address + static_cast<uint64_t>(gmt_call_wait_end - gmt_call_begin);
}

uint64_t RedZone() { return 128; }

void SaveInto(const Registers& before, CallData* data) {
  user_regs_struct r = General(before);
  RewindSyscall(&r);
  const uint64_t saved[] = {r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10,
                            r.r9,  r.r8,  r.rax, r.rcx, r.rdx, r.rsi, r.rdi, r.eflags};
  static_assert(sizeof(saved) == sizeof(data->saved));
  std::memcpy(data->saved, saved, sizeof(saved));
}

Registers CallRegisters(const Registers& before, uint64_t code, uint64_t data, uint64_t stack) {
  user_regs_struct r = General(before);
  r.rip = code;
  r.rbx = data;
  r.rsp = stack & ~uint64_t{15};
  r.rbp = 0;
  r.eflags = kPlainFlags;
  r.orig_rax = static_cast<uint64_t>(kNoSyscall);  // no system call to restart before the call
  r.rax = 0;
  Registers call;
  call.general.resize(sizeof(r));
  std::memcpy(call.general.data(), &r, sizeof(r));
  return call;
}

}  // namespace gmt::inject

#endif  // __x86_64__
