#include "collector/inject/seccomp_filter.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "collector/inject/traced_thread.h"

namespace gmt::inject {
namespace {

#if defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#endif

// Interprets a filter. The kernel limits what filters can do (kernel/seccomp.c,
// seccomp_check_filter): load words of the call from fixed offsets, compute, and jump forward.
class Machine {
 public:
  Machine(const SeccompFilter& filter, const seccomp_data& call) : filter_(filter), call_(call) {}

  uint32_t Run() {
    while (at_ < filter_.size()) {
      const sock_filter& i = filter_[at_++];
      switch (BPF_CLASS(i.code)) {
        case BPF_LD:
          a_ = Load(i);
          break;
        case BPF_LDX:
          x_ = Load(i);
          break;
        case BPF_ST:
          memory_[i.k % BPF_MEMWORDS] = a_;
          break;
        case BPF_STX:
          memory_[i.k % BPF_MEMWORDS] = x_;
          break;
        case BPF_ALU:
          Compute(i);
          break;
        case BPF_JMP:
          Jump(i);
          break;
        case BPF_RET:
          return BPF_RVAL(i.code) == BPF_A ? a_ : i.k;
        case BPF_MISC:
          (BPF_MISCOP(i.code) == BPF_TAX ? x_ : a_) = BPF_MISCOP(i.code) == BPF_TAX ? a_ : x_;
          break;
      }
    }
    return SECCOMP_RET_KILL_PROCESS;
  }

 private:
  uint32_t Load(const sock_filter& i) const {
    switch (BPF_MODE(i.code)) {
      case BPF_ABS: {
        uint32_t word = 0;
        if (i.k + sizeof(word) <= sizeof(call_))
          std::memcpy(&word, reinterpret_cast<const char*>(&call_) + i.k, sizeof(word));
        return word;
      }
      case BPF_MEM:
        return memory_[i.k % BPF_MEMWORDS];
      case BPF_LEN:
        return sizeof(call_);
      default:
        return i.k;
    }
  }

  void Compute(const sock_filter& i) {
    const uint32_t b = BPF_SRC(i.code) == BPF_X ? x_ : i.k;
    switch (BPF_OP(i.code)) {
      case BPF_ADD:
        a_ += b;
        break;
      case BPF_SUB:
        a_ -= b;
        break;
      case BPF_MUL:
        a_ *= b;
        break;
      case BPF_DIV:
        a_ = b == 0 ? 0 : a_ / b;
        break;
      case BPF_OR:
        a_ |= b;
        break;
      case BPF_AND:
        a_ &= b;
        break;
      case BPF_XOR:
        a_ ^= b;
        break;
      case BPF_LSH:
        a_ = b < 32 ? a_ << b : 0;
        break;
      case BPF_RSH:
        a_ = b < 32 ? a_ >> b : 0;
        break;
      case BPF_NEG:
        a_ = 0 - a_;
        break;
    }
  }

  void Jump(const sock_filter& i) {
    const uint32_t b = BPF_SRC(i.code) == BPF_X ? x_ : i.k;
    bool taken = false;
    switch (BPF_OP(i.code)) {
      case BPF_JA:
        at_ += i.k;
        return;
      case BPF_JEQ:
        taken = a_ == b;
        break;
      case BPF_JGT:
        taken = a_ > b;
        break;
      case BPF_JGE:
        taken = a_ >= b;
        break;
      case BPF_JSET:
        taken = (a_ & b) != 0;
        break;
    }
    at_ += taken ? i.jt : i.jf;
  }

  const SeccompFilter& filter_;
  const seccomp_data& call_;
  size_t at_ = 0;
  uint32_t a_ = 0, x_ = 0;
  uint32_t memory_[BPF_MEMWORDS] = {};
};

// The strictest answer wins. The kernel compares them as signed numbers.
uint32_t RunFilters(const std::vector<SeccompFilter>& filters, const seccomp_data& call) {
  uint32_t strictest = SECCOMP_RET_ALLOW;
  for (const SeccompFilter& filter : filters) {
    const uint32_t answer = RunFilter(filter, call);
    if (static_cast<int32_t>(answer & SECCOMP_RET_ACTION_FULL) <
        static_cast<int32_t>(strictest & SECCOMP_RET_ACTION_FULL)) {
      strictest = answer;
    }
  }
  return strictest & SECCOMP_RET_ACTION_FULL;
}

struct NeededCall {
  const char* name;
  int number;
  uint64_t third_argument;  // of mmap and mprotect: protection
};

// Without these system calls no library can be loaded, or the injected call cannot finish properly.
constexpr NeededCall kNeeded[] = {
    {"openat", SYS_openat, 0},
    {"read", SYS_read, 0},
    {"fstat", SYS_fstat, 0},
    {"mmap", SYS_mmap, PROT_READ},
    {"mmap of code", SYS_mmap, PROT_READ | PROT_EXEC},
    {"mprotect", SYS_mprotect, PROT_READ},
    {"munmap", SYS_munmap, 0},
    {"close", SYS_close, 0},
    {"rt_sigprocmask", SYS_rt_sigprocmask, 0},
    {"sched_yield", SYS_sched_yield, 0},
    {"clock_gettime", SYS_clock_gettime, 0},
};
// The library works without these if they fail, but a filter must not kill the process for them.
constexpr NeededCall kWanted[] = {
    {"ftruncate", SYS_ftruncate, 0},
    {"fallocate", SYS_fallocate, 0},
    {"linkat", SYS_linkat, 0},
    {"unlinkat", SYS_unlinkat, 0},
    {"mkdirat", SYS_mkdirat, 0},
    {"newfstatat", SYS_newfstatat, 0},
    {"fstatfs", SYS_fstatfs, 0},
    {"flock", SYS_flock, 0},
    {"madvise", SYS_madvise, 0},
    {"brk", SYS_brk, 0},
    {"futex", SYS_futex, 0},
    {"pread64", SYS_pread64, 0},
    {"getpid", SYS_getpid, 0},
    {"gettid", SYS_gettid, 0},
    {"uname", SYS_uname, 0},
    {"getrandom", SYS_getrandom, 0},
    {"memfd_create", SYS_memfd_create, 0},
    {"write", SYS_write, 0},
    {"readlinkat", SYS_readlinkat, 0},
    {"getdents64", SYS_getdents64, 0},
    {"prctl", SYS_prctl, 0},
    {"getcwd", SYS_getcwd, 0},
    {"geteuid", SYS_geteuid, 0},
    {"kill", SYS_kill, 0},
    {"nanosleep", SYS_nanosleep, 0},
    {"prlimit64", SYS_prlimit64, 0},
    {"rt_sigpending", SYS_rt_sigpending, 0},
    {"clone", SYS_clone, 0},
    {"set_robust_list", SYS_set_robust_list, 0},
    {"rseq", SYS_rseq, 0},
    {"rt_sigtimedwait", SYS_rt_sigtimedwait, 0},
    {"clone3", SYS_clone3, 0},
    {"process_vm_readv", SYS_process_vm_readv, 0},
#if defined(__x86_64__)
    {"access", SYS_access, 0},
    {"mkdir", SYS_mkdir, 0},
    {"readlink", SYS_readlink, 0},
    {"unlink", SYS_unlink, 0},
#endif
};

seccomp_data CallOf(const NeededCall& needed) {
  seccomp_data call = {};
  call.nr = needed.number;
  call.arch = kArchitecture;
  call.args[1] = 4096;  // the size, in calls that have one
  call.args[2] = needed.third_argument;
  return call;
}

bool Kills(uint32_t action) {
  return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD ||
         action == SECCOMP_RET_TRAP;
}

}  // namespace

uint32_t RunFilter(const SeccompFilter& filter, const seccomp_data& call) {
  return Machine(filter, call).Run();
}

std::string FindForbiddenCall(const std::vector<SeccompFilter>& filters) {
  for (const NeededCall& needed : kNeeded) {
    const uint32_t action = RunFilters(filters, CallOf(needed));
    if (Kills(action)) return absl::StrCat(needed.name, " would end it");
    if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG)
      return absl::StrCat(needed.name, " is refused");
  }
  for (const NeededCall& wanted : kWanted) {
    if (Kills(RunFilters(filters, CallOf(wanted))))
      return absl::StrCat(wanted.name, " would end it");
  }
  return {};
}

absl::StatusOr<std::vector<SeccompFilter>> ReadSeccompFilters(pid_t pid) {
  constexpr int kGetFilter = 0x420c;  // PTRACE_SECCOMP_GET_FILTER
  constexpr auto kPatience = std::chrono::milliseconds(200);
  auto thread = TracedThread::Seize(pid);
  if (!thread.ok()) return thread.status();
  if (!(*thread)->Stop(kPatience)) return absl::UnavailableError("it cannot be stopped");
  std::vector<SeccompFilter> filters;
  while (true) {
    const auto request = static_cast<__ptrace_request>(kGetFilter);
    const long size = ptrace(request, pid, filters.size(), nullptr);
    if (size < 0 && errno == ENOENT) return filters;  // that was the last one
    if (size < 0) return absl::PermissionDeniedError(std::strerror(errno));
    SeccompFilter filter(static_cast<size_t>(size));
    if (ptrace(request, pid, filters.size(), filter.data()) < 0)
      return absl::UnavailableError(std::strerror(errno));
    filters.push_back(std::move(filter));
  }
}

absl::StatusOr<std::string> FindForbiddenCallOf(pid_t pid) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return absl::UnavailableError(absl::StrCat("cannot create a pipe: ", std::strerror(errno)));
  const pid_t child = fork();
  if (child == 0) {
    const absl::StatusOr<std::vector<SeccompFilter>> filters = ReadSeccompFilters(pid);
    const std::string text = absl::StrCat(
        std::string(1, static_cast<char>(filters.status().code())),
        filters.ok() ? FindForbiddenCall(*filters) : std::string(filters.status().message()));
    (void)!write(ends[1], text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    _exit(0);
  }
  close(ends[1]);
  char text[PIPE_BUF];
  ssize_t size;
  while ((size = read(ends[0], text, sizeof(text))) < 0 && errno == EINTR) {
  }
  close(ends[0]);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (size < 1) return absl::UnavailableError("the process that reads them has ended");
  const std::string said(text + 1, static_cast<size_t>(size) - 1);
  if (text[0] != 0) return absl::Status(static_cast<absl::StatusCode>(text[0]), said);
  return said;
}

}  // namespace gmt::inject
