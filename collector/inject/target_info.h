// collector/inject/target_info.h
//
// What can be found out about a process before an attach without disturbing it: everything that
// decides whether it can be attached to, and the locations of its files.
//
// Thread safety: free functions; values are plain.

#ifndef GMT_COLLECTOR_INJECT_TARGET_INFO_H_
#define GMT_COLLECTOR_INJECT_TARGET_INFO_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collector/inject/memory_map.h"

namespace gmt::inject {

enum class ProgramKind {
  kUnknown,  // its file cannot be read
  kGlibc,
  kMusl,
  kStatic,  // no loader
  k32Bit,
  kOtherMachine,
  kNoLibc,  // a loader other than those of glibc and musl
  kHosted,  // inside a static program that loaded a libc for it, such as valgrind
};

struct TargetInfo {
  pid_t pid = 0;
  bool exists = false;
  pid_t thread_of = 0;  // not 0: `pid` is a thread of this process
  std::string name;     // from the kernel, at most 15 bytes
  char state = 0;       // of its main thread: R, S, D, T, t, Z ...
  int threads = 0;
  bool kernel_thread = false;
  pid_t tracer = 0;
  std::string tracer_name;
  std::vector<uid_t> uids;  // real, effective, saved, file system
  uid_t uid = 0;            // effective
  gid_t gid = 0;
  pid_t inner_pid = 0;  // in its own PID namespace
  int seccomp = 0;      // 0 none, 1 strict, 2 filters
  int seccomp_filters = 0;
  uint64_t pid_namespace = 0;  // 0 if unknown
  bool own_user_namespace = true, own_mount_namespace = true;

  int memory_errno =
      0;  // of opening its memory, which needs the same rights as tracing; 0: allowed
  int maps_errno = 0;
  bool looks_undumpable = false;
  MemoryMap map;
  std::string program;  // path of its file, as it sees it
  ProgramKind kind = ProgramKind::kUnknown;
  std::string interpreter;  // of a dynamic program

  // Properties of the system and of this process
  int yama_scope = -1;            // kernel.yama.ptrace_scope; -1 if the kernel does not have it
  bool can_trace_others = false;  // we have CAP_SYS_PTRACE
  bool is_descendant = false;     // of ours
  int own_seccomp = 0, own_seccomp_filters = 0;
};

TargetInfo Inspect(pid_t pid);

// Returns whether the process has loaded a CUDA driver or opened an NVIDIA device.
bool UsesGpu(pid_t pid);
// Returns the descendants that use a GPU. Excludes those that were forked by a GPU user and have
// only inherited its driver, such as DataLoader workers: a GPU used before a fork is unusable after
// it.
std::vector<pid_t> DescendantsThatUseGpu(pid_t pid);
// Returns the command line with spaces between the arguments, truncated to `max` bytes.
std::string CommandLineOf(pid_t pid, size_t max);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_TARGET_INFO_H_
