// preload/stacks/python/eval_function.h
//
// EvalFunction: where the code of _PyEval_EvalFrameDefault lies. Up to 3.10 each call of it runs
// one Python frame, and nothing on its stack tells which: a native frame in its code stands for the
// next Python frame.
//
// Compilers put what rarely runs into a second part, far away and without a name of its own
// (`_PyEval_EvalFrameDefault.cold`): the matrix product for one, and many places where an object
// dies. The first part jumps there again and again; so it is found as the function (by .eh_frame)
// that most of those jumps lead to.

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

// `function`: the address of its symbol; nullptr finds nothing. Asks the loader.
EvalFunction FindEvalFunction(const void* function);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_EVAL_FUNCTION_H_
