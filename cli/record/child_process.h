// cli/record/child_process.h
//
// ChildProcess: the command that `gpumemtrace run` runs. It gets the terminal, the descriptors and
// the working directory of this process; signals sent to this process reach it.
//
// Thread safety: one at a time in a process (signal handlers are the process's own).

#ifndef GMT_CLI_RECORD_CHILD_PROCESS_H_
#define GMT_CLI_RECORD_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace gmt::cli {

struct ChildExit {
  bool started = false;  // false: the command could not be executed
  int exec_errno = 0;    // why
  bool signalled = false;
  int code = 0;  // exit code, or signal number

  // As env(1) and shells tell it: the code, 128 + signal, 127 not found, 126 not executable.
  int ShellCode() const;
};

class ChildProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  // Starts `command` with `environment` set over this process's own. Signals are forwarded from
  // here on; those of the terminal reach the child anyway and only keep this process alive.
  ChildProcess(const std::vector<std::string>& command, const Environment& environment);

  pid_t pid() const { return pid_; }

  // Waits for its end.
  ChildExit Wait();

 private:
  pid_t pid_ = -1;
  int exec_errno_ = 0;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_CHILD_PROCESS_H_
