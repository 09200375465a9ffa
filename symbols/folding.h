// symbols/folding.h
//
// Which frames of a stack are noise to somebody who looks for the line that allocated: the
// profiler's own hooks, the inside of allocators and of the CUDA runtime, the Python interpreter's
// machinery, thread start.
//
// Folding hides, it never deletes: a stack whose every frame is noise shows its innermost frame.
//
//   caught                              shown
//   cudaMalloc            (runtime)
//   CUDACachingAllocator::malloc (alloc.)
//   at::detail::empty_cuda       (alloc.)
//   at::native::linear    (own)         at::native::linear
//   _PyEval_EvalFrameDefault (interp.)
//   forward  model.py:88  (own)         forward  model.py:88
//
// The rules are one table in folding.cc; a new one is one line there and one in the test.
// Thread safety: pure functions.

#ifndef GMT_SYMBOLS_FOLDING_H_
#define GMT_SYMBOLS_FOLDING_H_

#include <string_view>

namespace gmt::symbols {

enum class FrameRole {
  kOwn,          // the program's or a library's code: shown
  kProfiler,     // libgpumemtrace.so
  kCuda,         // CUDA runtime and driver
  kAllocator,    // inside an allocator: a framework's, the C++ library's
  kDispatcher,   // PyTorch's way from one operator to the next
  kInterpreter,  // CPython's evaluation loop and call machinery
  kStart,        // what calls main or a thread's first function
};

// `function`: demangled name, may be empty. `module`: path of the module, or a named frame's
// module; may be empty. `file`: source file, may be empty.
FrameRole RoleOf(std::string_view function, std::string_view module, std::string_view file);

inline bool IsNoise(FrameRole role) { return role != FrameRole::kOwn; }

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_FOLDING_H_
