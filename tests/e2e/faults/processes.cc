// A GPU program that starts, replaces and ends processes in many ways.
//
// Usage: processes WAY    prints the results of its children; exit code 5
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "use_gpu.h"

extern char** environ;

namespace {

std::string self;

void Wait(pid_t child) {
  int status = 0;
  const pid_t ended = waitpid(child, &status, 0);
  std::printf("child %s %d\n", ended == child ? "ended" : "lost", status);
}

// The child side of a fork: allocates twice.
void Child(pid_t child) {
  if (child != 0) return Wait(child);
  UseGpu(2);
  _exit(7);
}

void Fork(bool after) {
  if (after) UseGpu(1);
  Child(fork());
  if (after) UseGpu(3);
}

void RawClone() {
  UseGpu(1);
  Child(static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
  UseGpu(3);
}

void VforkAndExec() {
  UseGpu(1);
  const pid_t child = vfork();
  if (child == 0) {
    execl(self.c_str(), self.c_str(), "use", nullptr);
    _exit(1);
  }
  Wait(child);
  UseGpu(3);
}

void Spawn() {
  UseGpu(1);
  char* argv[] = {self.data(), const_cast<char*>("use"), nullptr};
  pid_t child = -1;
  if (posix_spawn(&child, self.c_str(), nullptr, nullptr, argv, environ) == 0) Wait(child);
  UseGpu(3);
}

void Exec(const char* next, int count) {
  UseGpu(count);
  std::fflush(stdout);
  execl(self.c_str(), self.c_str(), next, nullptr);
}

void CloseFrom(int first) {
  for (int fd = first; fd <= 1024; ++fd) close(fd);
}

// The file shows that the daemon has finished its work.
[[noreturn]] void WorkAsADaemon() {
  UseGpu(2);
  std::exit(open("done", O_CREAT | O_WRONLY, 0600) < 0);
}

// Becomes a daemon in the usual way. A late daemon must exec a new program to use the GPU.
void Daemonise(bool late) {
  if (late) UseGpu(1);
  std::fflush(stdout);
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  umask(0);
  CloseFrom(0);
  if (late) execl(self.c_str(), self.c_str(), "daemon-work", nullptr);
  WorkAsADaemon();
}

std::string Contents(const char* path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

// Closes everything and opens its own files: no other code may write to those descriptors.
void FilesBehindOldNumbers(int first) {
  const int out = fcntl(STDOUT_FILENO, F_DUPFD, 1500);
  CloseFrom(first);
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    const int fd = open(name, O_CREAT | O_RDWR, 0600);
    if (write(fd, "own data", 8) != 8) _exit(98);
    lseek(fd, 0, SEEK_SET);
  }
  UseGpu(2);
  UseGpu(1);
  std::string all;
  for (const char* name : {"a", "b", "c", "d", "e"}) all += Contents(name) + "\n";
  if (write(out, all.data(), all.size()) < 0) _exit(98);
}

void Many() {
  pid_t children[64];
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) {
      UseGpu(5);
      std::exit(7);
    }
  }
  int ended = 0;
  for (const pid_t child : children) {
    int status = 0;
    ended += waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7;
  }
  std::printf("%d ended\n", ended);
}

void Subreaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  UseGpu(1);
  Wait(fork() ?: (_exit(7), 0));
}

void SubreaperWaits() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  UseGpu(1);
  std::printf("%s\n", waitpid(-1, nullptr, WNOHANG) < 0 ? "no child" : "a child");
}

void DropRights(bool late) {
  if (late) UseGpu(1);
  if (setgid(65534) != 0 || setuid(65534) != 0) _exit(98);
  UseGpu(1);
}

long VmSize() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

void Limit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit = {value, value};
  if (setrlimit(resource, &limit) != 0) _exit(98);
}

void Limited(const std::string& what) {
  cudaFree(nullptr);  // let the runtime allocate its own resources first
  if (what == "nofile") Limit(RLIMIT_NOFILE, 3);
  if (what == "memory") Limit(RLIMIT_AS, static_cast<rlim_t>(VmSize()) + (14 << 20));
  if (what == "no-memory") Limit(RLIMIT_AS, static_cast<rlim_t>(VmSize()) + (3 << 20));
  if (what == "file-size") Limit(RLIMIT_FSIZE, 1 << 20);
  if (what == "file-size-20m") Limit(RLIMIT_FSIZE, 20 << 20);
  if (what == "file-size-0") Limit(RLIMIT_FSIZE, 0);
  if (what == "nproc") {
    if (setuid(65534) != 0) _exit(98);
    Limit(RLIMIT_NPROC, 1);
  }
  UseGpu(3);
}

// From here on the system call returns `action`.
void Deny(unsigned call, unsigned action) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(98);
}

void InASandbox(const std::string& way) {
  constexpr unsigned kDenied = SECCOMP_RET_ERRNO | 1;  // EPERM
  if (way == "deny-clone") Deny(SYS_clone, kDenied);
  if (way == "deny-exec") Deny(SYS_execve, kDenied);
  if (way == "kill-exec") Deny(SYS_execve, SECCOMP_RET_KILL_PROCESS);
  if (way == "deny-madvise") Deny(SYS_madvise, kDenied);
  if (way == "deny-pidfd") Deny(SYS_pidfd_open, kDenied);
  UseGpu(3);
}

// 120 allocations that are kept, made at long intervals.
void Hold() {
  for (int i = 0; i < 120; ++i) UseGpu(400);
}

void InADeletedDirectory() {
  if (mkdir("gone", 0700) != 0 || chdir("gone") != 0 || rmdir("../gone") != 0) _exit(98);
  UseGpu(1);
}

void InAChroot() {
  if (mkdir("jail", 0700) != 0 || chroot("jail") != 0 || chdir("/") != 0) _exit(98);
  UseGpu(1);
}

void Take(const std::string& way) {
  if (way == "use") UseGpu(2);
  if (way == "fork-before") Fork(false);
  if (way == "fork-after") Fork(true);
  if (way == "raw-clone") RawClone();
  if (way == "vfork-exec") VforkAndExec();
  if (way == "spawn") Spawn();
  if (way == "exec") Exec("exec-2", 1);
  if (way == "exec-2") Exec("use", 3);
  if (way == "long") UseGpu(300000);
  if (way == "hold") Hold();
  if (way == "stopped") UseGpu(1000), raise(SIGSTOP), UseGpu(1000);
  if (way == "daemon") Daemonise(false);
  if (way == "daemon-late") Daemonise(true);
  if (way == "daemon-work") WorkAsADaemon();
  if (way == "close-all") FilesBehindOldNumbers(3);
  if (way == "close-all-and-stderr") FilesBehindOldNumbers(0);
  if (way == "many") Many();
  if (way == "subreaper") Subreaper();
  if (way == "subreaper-waits") SubreaperWaits();
  if (way == "drop-rights") DropRights(false);
  if (way == "drop-rights-late") DropRights(true);
  if (way == "deleted-directory") InADeletedDirectory();
  if (way == "chroot") InAChroot();
  if (way.rfind("limit-", 0) == 0) Limited(way.substr(6));
  if (way.rfind("deny-", 0) == 0 || way == "kill-exec") InASandbox(way);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  self = argv[0];
  Take(argv[1]);
  return 5;
}
