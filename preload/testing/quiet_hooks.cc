// After warm-up, hooks allocate nothing and never enter the kernel. The second half of this
// program's calls runs under a seccomp filter that kills the process at any system call except
// exit, and counts calls of malloc. Exit code: 0 quiet, 1 malloc was called; killed by SIGSYS: a
// system call was made.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "preload/testing/runtime.h"

extern "C" void* __libc_malloc(size_t size);

namespace {
std::atomic<int> mallocs{0};
}

extern "C" void* malloc(size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}

namespace {

void AllocateAndFree(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    void *device = nullptr, *host = nullptr, *failed = nullptr;
    cudaMalloc(&device, 4096 + static_cast<size_t>(i));
    cudaHostAlloc(&host, 512, 0);
    cudaMalloc(&failed, 0);
    cudaFree(device);
    cudaFreeHost(host);
    cudaFree(reinterpret_cast<void*>(0x1000));  // fails: the free is undone
  }
}

bool ForbidSystemCalls() {
  sock_filter allow_exit[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the call's number
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  sock_fprog program = {sizeof(allow_exit) / sizeof(allow_exit[0]), allow_exit};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

int main() {
  AllocateAndFree(100);
  const int before = mallocs.load();
  if (!ForbidSystemCalls()) return 77;
  AllocateAndFree(10000);
  syscall(SYS_exit_group, mallocs.load() == before ? 0 : 1);
}
