// cli/record/next_step.h
//
// The last line of `gpumemtrace doctor`: what to type next on this machine.
//
// Thread safety: may be called from any thread.

#ifndef GMT_CLI_RECORD_NEXT_STEP_H_
#define GMT_CLI_RECORD_NEXT_STEP_H_

#include <string>
#include <vector>

#include "cli/record/health.h"

namespace gmt::cli {

// How a shell with this process's PATH calls programs.
struct ShellCommands {
  std::string gpumemtrace;  // its name if PATH has it, otherwise the path of this program
  std::string python;       // "python", "python3", or "" if PATH has neither
};

ShellCommands FindCommands();

// Returns the next step for a machine with these checks, without a line break: a command that works
// there as it is printed, or what must be corrected first.
std::string NextStep(const std::vector<Check>& checks, const ShellCommands& commands);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_NEXT_STEP_H_
