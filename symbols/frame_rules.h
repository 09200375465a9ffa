// symbols/frame_rules.h
//
// FrameRules: the role of each frame of a stack for a reader who looks for the allocating line: the
// program's own code, a library, or noise (the profiler's hooks, internals of allocators and of the
// CUDA runtime, the Python interpreter's call machinery, thread start). Noise is folded.
//
// Folding only hides frames: if all frames of a stack are noise, its innermost frame is shown.
//
//   recorded                                   role          shown
//   cudaMalloc                                cuda
//   CUDACachingAllocator::malloc              allocator
//   at::native::linear                        library       ... > at::native::linear
//   _PyEval_EvalFrameDefault                  interpreter
//   forward        .../torch/nn/linear.py     library
//   _call_impl     .../torch/nn/module.py     dispatcher
//   Net.forward    model.py:88                own           Net.forward (model.py:88) > ...
//
// The rules are text: symbols/frame_rules.txt, which is built in and documents the format,
// preceded by the user's own rules.
//
// Thread safety: const methods may be called from any thread.

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
  kLibrary,      // code of a library
  kOperator,     // folded, but names the called operation if nothing better does
  kProfiler,     // libgpumemtrace.so
  kCuda,         // CUDA runtime and driver
  kAllocator,    // inside an allocator: a framework's, the C++ library's
  kDispatcher,   // a framework's dispatch from one operator or module to the next
  kInterpreter,  // CPython's evaluation loop and call machinery
  kStart,        // code that calls main or the first function of a thread
};

inline bool IsNoise(FrameRole role) {
  return role != FrameRole::kOwn && role != FrameRole::kLibrary;
}

// Returns the word used in rules: "own", "library", ...
std::string_view RoleName(FrameRole role);

class FrameRules {
 public:
  // Returns the built-in rules.
  static const FrameRules& BuiltIn();
  // Returns rules that fold nothing: every frame is the program's own.
  static const FrameRules& None();
  // Returns the rules of the file at `path` followed by the built-in ones. An error contains file,
  // line and the allowed words.
  static absl::StatusOr<FrameRules> WithFile(const std::string& path);
  // `name`: name of the text in errors.
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
