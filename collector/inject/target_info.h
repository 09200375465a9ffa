// collector/inject/target_info.h
//
// What can be known of a process before it is attached to, without disturbing it: everything that
// decides whether it can be, and where its files lie.
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
  kUnknown,  // its file cannot be looked at
  kGlibc,
  kMusl,
  kStatic,  // no loader
  k32Bit,
  kOtherMachine,
  kNoLibc,  // another loader than those of glibc and musl
  kHosted,  // inside of a static program that has loaded a libc for it, as valgrind does
};

struct TargetInfo {
  pid_t pid = 0;
  bool exists = false;
  pid_t thread_of = 0;  // not 0: `pid` is no process but a thread of this one
  std::string name;     // as the kernel has it, at most 15 bytes
  char state = 0;       // of its first thread: R, S, D, T, t, Z ...
  int threads = 0;
  bool kernel_thread = false;
  pid_t tracer = 0;
  std::string tracer_name;
  std::vector<uid_t> uids;  // real, effective, saved, file system
  uid_t uid = 0;            // effective
  gid_t gid = 0;
  pid_t inner_pid = 0;  // as the process sees itself
  int seccomp = 0;      // 0 none, 1 strict, 2 filters
  int seccomp_filters = 0;
  uint64_t pid_namespace = 0;  // 0 where it cannot be told
  bool own_user_namespace = true, own_mount_namespace = true;

  int memory_errno =
      0;  // of opening its memory, which asks the kernel what tracing would; 0: allowed
  int maps_errno = 0;
  bool looks_undumpable = false;
  MemoryMap map;
  std::string program;  // its file, as it sees it
  ProgramKind kind = ProgramKind::kUnknown;
  std::string interpreter;  // of a dynamic program

  // Beside the process
  int yama_scope = -1;            // kernel.yama.ptrace_scope; -1 where the kernel has none
  bool can_trace_others = false;  // we have CAP_SYS_PTRACE
  bool is_descendant = false;     // of ours
  int own_seccomp = 0, own_seccomp_filters = 0;
};

TargetInfo Inspect(pid_t pid);

// Whether it has a CUDA driver, or a device of NVIDIA's open.
bool UsesGpu(pid_t pid);
// Its descendants that do. Not those that were forked by one that does and have only its driver, as
// DataLoader's workers: nobody can use a GPU that was in use before a fork.
std::vector<pid_t> DescendantsThatUseGpu(pid_t pid);
// Its command line with blanks between the words, cut at `max` bytes.
std::string CommandLineOf(pid_t pid, size_t max);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_TARGET_INFO_H_
