// cli/record/child_process.h
//
// ChildProcess: the command that `gpumemtrace run` runs. It inherits the terminal, the descriptors
// and the working directory of this process. Signals sent to this process are forwarded to it.
//
// Thread safety: one object at a time per process, because signal handlers are global.

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

  // Returns the code as env(1) and shells do: the exit code, 128 + signal, 127 if not found, 126 if
  // not executable.
  int ShellCode() const;
};

class ChildProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  enum class Output { kInherited, kStandardError };  // where its standard output goes

  // Starts `command` with `environment` added to this process's own. Forwards signals until the
  // child has ended. Those from the terminal reach it anyway, and only must not end this process.
  ChildProcess(const std::vector<std::string>& command, const Environment& environment,
               Output output = Output::kInherited);

  pid_t pid() const { return pid_; }

  // Waits until the child has ended. From then on signals act on this process as they did before.
  ChildExit Wait();

 private:
  pid_t pid_ = -1;
  int exec_errno_ = 0;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_CHILD_PROCESS_H_
