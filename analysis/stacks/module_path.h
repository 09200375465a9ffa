// analysis/stacks/module_path.h
//
// Which module of a model allocated: the classes whose forward functions a stack passes through, and the
// line in the innermost of them that is not PyTorch's own.
//
//   at::linear < Linear.forward < _call_impl < Block.forward (gpt.py:45) < _call_impl < GPT.forward
//                                                        "GPT > Block > Linear (gpt.py:45)"
//
// Which of several equal blocks of a model it was, a stack does not say.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_STACKS_MODULE_PATH_H_
#define GMT_ANALYSIS_STACKS_MODULE_PATH_H_

#include <string>
#include <vector>

#include "analysis/stacks/frames.h"

namespace gmt::analysis {

// Empty where no module was called. Python before 3.11 does not name the class: its functions stand
// with their lines instead.
std::string ModulePath(const std::vector<FrameText>& frames);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_STACKS_MODULE_PATH_H_
