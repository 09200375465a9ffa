// analysis/stacks/module_path.h
//
// The module of a model that allocated: the classes whose forward functions a stack passes through,
// and the line in the innermost of them that is not PyTorch's own.
//
//   at::linear < Linear.forward < _call_impl < Block.forward (gpt.py:45) < _call_impl < GPT.forward
//                                                        "GPT > Block > Linear (gpt.py:45)"
//
// A stack does not show which of several equal blocks of a model it was.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_STACKS_MODULE_PATH_H_
#define GMT_ANALYSIS_STACKS_MODULE_PATH_H_

#include <string>
#include <vector>

#include "analysis/stacks/frames.h"

namespace gmt::analysis {

// Returns "" if no module was called. Python before 3.11 does not record the class; then functions
// with their lines are shown instead.
std::string ModulePath(const std::vector<FrameText>& frames);

struct ModuleCall {
  std::string module;  // as in a path: "Block"
  std::string
      caller;  // the program's line that called it, "GPT.forward (gpt.py:30)"; "" if unknown
};
// The modules of the path, outermost first.
std::vector<ModuleCall> ModuleCalls(const std::vector<FrameText>& frames);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_STACKS_MODULE_PATH_H_
