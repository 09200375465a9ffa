// symbols/frame_rules.h
//
// FrameRules: what each frame of a stack is to somebody who looks for the line that allocated: the
// program's own code, a library's, or noise - the profiler's own hooks, the inside of allocators
// and of the CUDA runtime, the Python interpreter's machinery, thread start. Noise is folded.
//
// Folding hides, it never deletes: a stack whose every frame is noise shows its innermost frame.
//
//   caught                                    role          shown
//   cudaMalloc                                cuda
//   CUDACachingAllocator::malloc              allocator
//   at::native::linear                        library       ... > at::native::linear
//   _PyEval_EvalFrameDefault                  interpreter
//   forward        .../torch/nn/linear.py     library
//   _call_impl     .../torch/nn/module.py     dispatcher
//   Net.forward    model.py:88                own           Net.forward (model.py:88) > ...
//
// The rules are text: symbols/frame_rules.txt, which is built in and states the format, with a
// user's own in front of it.
//
// Thread safety: const methods from any thread.

#ifndef GMT_SYMBOLS_FRAME_RULES_H_
#define GMT_SYMBOLS_FRAME_RULES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "symbols/frame_pattern.h"

namespace gmt::symbols {

enum class FrameRole {
  kOwn,          // the program's code
  kLibrary,      // other people's code
  kOperator,     // folded, but says what was called where nothing better does
  kProfiler,     // libgpumemtrace.so
  kCuda,         // CUDA runtime and driver
  kAllocator,    // inside an allocator: a framework's, the C++ library's
  kDispatcher,   // a framework's way from one operator or module to the next
  kInterpreter,  // CPython's evaluation loop and call machinery
  kStart,        // what calls main or a thread's first function
};

inline bool IsNoise(FrameRole role) {
  return role != FrameRole::kOwn && role != FrameRole::kLibrary;
}

// "own", "library", ...: as in the rules.
std::string_view RoleName(FrameRole role);

class FrameRules {
 public:
  // The rules that are built in.
  static const FrameRules& BuiltIn();
  // Folds nothing: every frame is the program's own.
  static const FrameRules& None();
  // Those of the file at `path`, then the built-in ones. An error names file and line, and what may
  // stand there.
  static absl::StatusOr<FrameRules> WithFile(const std::string& path);
  // `name`: what errors call the text.
  static absl::StatusOr<FrameRules> Parse(std::string_view text, const std::string& name);

  FrameRole RoleOf(const FrameView& frame) const;
  size_t size() const { return rules_.size(); }

 private:
  struct Rule {
    FrameRole role;
    FramePattern pattern;
  };

  static absl::StatusOr<Rule> ParseRule(std::string_view line);

  std::vector<Rule> rules_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_FRAME_RULES_H_
