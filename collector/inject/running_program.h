// collector/inject/running_program.h
//
// RunningProgram: the program that a process runs now. After an exec the pid and the start time are
// the same, but the memory of this program, and a library that was injected into it, are gone.
//
// Thread safety: const; any thread.

#ifndef GMT_COLLECTOR_INJECT_RUNNING_PROGRAM_H_
#define GMT_COLLECTOR_INJECT_RUNNING_PROGRAM_H_

#include <sys/types.h>

namespace gmt::inject {

class RunningProgram {
 public:
  explicit RunningProgram(pid_t pid);
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  // Returns whether it has ended, or has been replaced by another program. False if that cannot be
  // found out, because the kernel does not let us read the process's mappings.
  bool IsGone() const;

 private:
  int maps_;
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_RUNNING_PROGRAM_H_
