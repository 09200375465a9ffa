/* Processes that cannot be attached to, each for a reason of its own. Prints "ready" and waits to be killed.
 *
 *   refuser plain|undumpable|seccomp-kill|seccomp-errno|seccomp-harmless|strict|leaderless|vfork|zombie
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

#if defined(__GLIBC__) /* the kernel's headers are not found by musl-gcc */
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

#endif

static void* live_on(void* arg) {
  usleep(200000);
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
  if (strcmp(what, "strict") == 0) {
    ready();
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) != 12345) {
    }
  }
#endif
  if (strcmp(what, "leaderless") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, live_on, NULL);
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
    usleep(50000);
    char line[32];
    const int size = snprintf(line, sizeof(line), "ready %d\n", (int)child);
    if (write(STDOUT_FILENO, line, (size_t)size) != size) return 3;
    for (;;) pause();
  }
  ready();
  for (;;) pause();
}
