// preload/stacks/python/eval_function.h
//
// EvalFunction: the address ranges of _PyEval_EvalFrameDefault. Up to 3.10 each call of it runs one
// Python frame, and nothing on its stack identifies that frame: a native frame in its code
// corresponds to the next Python frame.
//
// Compilers move rarely executed code to a distant second part without a symbol of its own
// (`_PyEval_EvalFrameDefault.cold`): the matrix product for one, and many places where an object is
// destroyed. The first part jumps there in many places, so the second part is found as the function
// (by .eh_frame) that most of those jumps lead to.

#ifndef GMT_PRELOAD_STACKS_PYTHON_EVAL_FUNCTION_H_
#define GMT_PRELOAD_STACKS_PYTHON_EVAL_FUNCTION_H_

#include <stdint.h>

namespace gmt::preload {

struct CodeRange {
  uint64_t start = 0, bytes = 0;
  bool Holds(uint64_t pc) const { return pc - start < bytes; }
};

struct EvalFunction {
  CodeRange usual, rare;
  bool Holds(uint64_t pc) const { return usual.Holds(pc) || rare.Holds(pc); }
};

// `function`: the address of its symbol; nullptr yields empty ranges. Calls the loader.
EvalFunction FindEvalFunction(const void* function);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_EVAL_FUNCTION_H_
