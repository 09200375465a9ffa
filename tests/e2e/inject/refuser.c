/* Processes that cannot be attached to, each for a different reason. Prints "ready" and waits to be killed.
 *
 *   refuser plain|undumpable|seccomp-kill|seccomp-errno|seccomp-harmless|seccomp-few|seccomp-enough|strict|leaderless|
 *           vfork|zombie
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__GLIBC__) /* musl-gcc does not find the kernel headers */
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif

static void ready(void) {
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) _exit(3);
}

#if defined(__GLIBC__)
static void filter(unsigned number, unsigned action) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(4);
}

/* Allows only the system calls for loading the library, and if `enough` those that the library makes
 * afterwards. All others end the process. */
static void allow_only(int enough) {
  static const unsigned kLoading[] = {
      SYS_openat, SYS_read, SYS_fstat, SYS_mmap, SYS_mprotect, SYS_munmap, SYS_close, SYS_rt_sigprocmask,
      SYS_sched_yield, SYS_clock_gettime, SYS_pause, SYS_write, SYS_restart_syscall, SYS_exit_group,
      SYS_futex, SYS_brk, SYS_rt_sigreturn, SYS_poll};
  static const unsigned kAfterwards[] = {
      SYS_ftruncate, SYS_fallocate, SYS_linkat, SYS_unlinkat, SYS_mkdirat, SYS_newfstatat, SYS_fstatfs,
      SYS_flock, SYS_madvise, SYS_getpid, SYS_gettid, SYS_uname, SYS_getrandom, SYS_memfd_create,
      SYS_readlinkat, SYS_getdents64, SYS_prctl, SYS_getcwd, SYS_geteuid, SYS_kill, SYS_nanosleep,
      SYS_prlimit64, SYS_rt_sigpending, SYS_pread64, SYS_clone, SYS_set_robust_list, SYS_rseq, SYS_rt_sigtimedwait, SYS_clone3, SYS_process_vm_readv,
      SYS_access, SYS_mkdir, SYS_readlink, SYS_unlink};
  struct sock_filter code[2 * 64 + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  unsigned short n = 1;
  const size_t loading = sizeof(kLoading) / sizeof(kLoading[0]);
  const size_t all = loading + (enough ? sizeof(kAfterwards) / sizeof(kAfterwards[0]) : 0);
  for (size_t i = 0; i < all; ++i) {
    const unsigned number = i < loading ? kLoading[i] : kAfterwards[i - loading];
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  struct sock_fprog program = {n, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(4);
}

#endif

static void* live_on(void* arg) {
  pthread_join(*(pthread_t*)arg, NULL); /* wait for the end of the first thread */
  ready();
  for (;;) pause();
  return arg;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "plain";
  if (strcmp(what, "undumpable") == 0) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#if defined(__GLIBC__)
  if (strcmp(what, "seccomp-kill") == 0) filter(SYS_openat, SECCOMP_RET_KILL_PROCESS);
  if (strcmp(what, "seccomp-errno") == 0) filter(SYS_mmap, SECCOMP_RET_ERRNO | EPERM);
  if (strcmp(what, "seccomp-harmless") == 0) filter(SYS_reboot, SECCOMP_RET_KILL_PROCESS);
  if (strcmp(what, "seccomp-few") == 0) allow_only(0);
  if (strcmp(what, "seccomp-enough") == 0) allow_only(1);
  if (strcmp(what, "strict") == 0) {
    ready();
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) != 12345) {
    }
  }
#endif
  if (strcmp(what, "leaderless") == 0) {
    static pthread_t thread, first;
    first = pthread_self();
    pthread_create(&thread, NULL, live_on, &first);
    pthread_exit(NULL);
  }
  if (strcmp(what, "vfork") == 0 && vfork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ready();
    for (;;) pause();
  }
  if (strcmp(what, "zombie") == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t ended;
    waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
    char line[32];
    const int size = snprintf(line, sizeof(line), "ready %d\n", (int)child);
    if (write(STDOUT_FILENO, line, (size_t)size) != size) return 3;
    for (;;) pause();
  }
  ready();
  for (;;) pause();
}
