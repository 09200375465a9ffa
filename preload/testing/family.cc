// Checks what a target sees of its own children and signals while it is traced.
//   usage: family wait        no child to wait for, no SIGCHLD, after the collector was started
//          family fork        a forked child that makes no GPU call, and frees its parent's memory
//          family fork-gpu    a forked child that allocates
//          family fork-first  the same, forked before its parent's first GPU call
//          family exec        the process replaces itself by `family wait`
// Prints one word; exits with 9.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/testing/runtime.h"

namespace {

volatile sig_atomic_t sigchlds = 0;

void CountSigchld(int) { sigchlds = sigchlds + 1; }

int WaitForNobody() {
  const pid_t child = waitpid(-1, nullptr, 0);
  printf("%s\n", child < 0 && errno == ECHILD && sigchlds == 0 ? "nobody" : "somebody");
  return 9;
}

int Fork(void* parents_memory, bool allocate) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    cudaFree(parents_memory);
    void* own;
    if (allocate) cudaMalloc(&own, 7777);
    _exit(allocate ? 4 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (parents_memory == nullptr) cudaMalloc(&parents_memory, 5555);
  printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return 9;
}

}  // namespace

int main(int, char** argv) {
  signal(SIGCHLD, CountSigchld);
  if (strcmp(argv[1], "fork-first") == 0) return Fork(nullptr, true);
  void* ptr;
  cudaMalloc(&ptr, 5555);
  if (strcmp(argv[1], "wait") == 0) return WaitForNobody();
  if (strcmp(argv[1], "exec") == 0) return execl(argv[0], argv[0], "wait", nullptr);
  return Fork(ptr, strcmp(argv[1], "fork-gpu") == 0);
}
