// collector/inject/preconditions.h
//
// Checks whether a process can be attached to by injecting the library. Each check reports what was
// found and how to fix it. `gpumemtrace attach --check PID` prints all of them; `attach` stops at
// the first failure.
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
  kNote,  // attaching works, with a limitation
};

struct Precondition {
  std::string name;  // its name in --json, such as "ptrace"
  Verdict verdict = Verdict::kPass;
  std::string found;  // a clause about the process: "it is being traced by strace (process 7)"
  std::string fix;    // a sentence; empty if it passes
};

// Returns the checks in order of importance: the ones after a failure may be unreliable. `library`:
// the library to be injected.
std::vector<Precondition> CheckAttachable(const TargetInfo& target, const std::string& library);

// Returns "process 7: it is ... . FIX"; empty if no check failed.
std::string FirstRefusal(const TargetInfo& target, const std::vector<Precondition>& checks);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_PRECONDITIONS_H_
