// collector/inject/preconditions.h
//
// Whether a process can be attached to by bringing the library into it, one reason at a time: what was found,
// and what mends it. `gpumemtrace attach --check PID` prints all of them; `attach` stops at the first that fails.
//
// Thread safety: free functions.

#ifndef GMT_COLLECTOR_INJECT_PRECONDITIONS_H_
#define GMT_COLLECTOR_INJECT_PRECONDITIONS_H_

#include <string>
#include <vector>

#include "collector/inject/target_info.h"

namespace gmt::inject {

enum class Verdict {
  kPass,
  kFail,
  kNote,  // attaching works, but something is to be known
};

struct Precondition {
  std::string name;  // "ptrace", as --json has it
  Verdict verdict = Verdict::kPass;
  std::string found;  // a clause about the process: "it is being traced by strace (process 7)"
  std::string fix;    // a sentence; empty where it passes
};

// In the order in which they matter: nothing behind one that failed may be relied on. `library`: what
// would be brought in.
std::vector<Precondition> CheckAttachable(const TargetInfo& target, const std::string& library);

// "process 7: it is ... . FIX"; empty where none fails.
std::string FirstRefusal(const TargetInfo& target, const std::vector<Precondition>& checks);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_PRECONDITIONS_H_
