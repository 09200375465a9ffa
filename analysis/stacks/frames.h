// analysis/stacks/frames.h
//
// Stacks as people read them: inlined calls expanded, names and lines where they are known, module
// + offset where not; and which of the frames a person wants to see first.
//
//   at::detail::empty_cuda                      allocator
//   at::native::linear                          library     LeadingFrame: what was called
//   _PyEval_EvalFrameDefault                    interpreter
//   Linear.forward  torch/nn/linear.py          library
//   MLP.forward     transformers/models/gpt.py  library     LibraryFrame: in which part of a library
//   Trainer.train   transformers/trainer.py     library
//   main            train.py:40                 own         OwnFrame: where the program did
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_STACKS_FRAMES_H_
#define GMT_ANALYSIS_STACKS_FRAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/definitions.h"
#include "symbols/frame_rules.h"

namespace gmt::analysis {

struct FrameText {
  std::string function;  // empty: not known
  std::string file;      // empty: not known
  uint32_t line = 0;     // 0: not known
  std::string language;  // "c++", "python", or what the log said
  std::string module;    // path; empty: not known
  uint64_t address = 0;  // of a native frame, in its module; in memory where no module is known
  symbols::FrameRole role = symbols::FrameRole::kOwn;

  bool is_noise() const { return symbols::IsNoise(role); }
  bool is_python() const { return language == "python"; }

  // The function; of a node of the autograd graph its class, "MmBackward0"; else "libfoo.so+0x1a2b",
  // else "0x7f0012345678", else "?".
  std::string Name() const;
  // "model.py:88", "model.py", or "": the file without its directories.
  std::string Place() const;
  // "model.py", or "".
  std::string FileName() const;
};

// Innermost first.
std::vector<FrameText> DescribeStack(
    const format::Definitions& definitions, uint32_t stack,
    const symbols::FrameRules& rules = symbols::FrameRules::BuiltIn());

// One frame of the recording: the calls that the compiler put into it, innermost first. Without rules
// its role is kOwn.
std::vector<FrameText> DescribeFrame(
    const format::Definitions& definitions, uint32_t frame,
    const symbols::FrameRules& rules = symbols::FrameRules::None());

// Without the frames that are noise; LeadingFrame stays in any case.
std::vector<FrameText> WithoutNoise(std::vector<FrameText> frames);

// The frame that says what was called: the innermost that is no noise, one with a name rather than
// without; an operator's where no code of a native library stands between it and the caller; else
// the innermost. -1 for no frames.
int LeadingFrame(const std::vector<FrameText>& frames);

// The frame where the program did it, LeadingFrame or one further out: the innermost of the
// program's own Python code, else of a library's other than PyTorch, else of PyTorch's that is no
// noise, else the innermost of the program's own, else the node of the autograd graph that was
// evaluated, else LeadingFrame.
int OwnFrame(const std::vector<FrameText>& frames);

// Where a library that the program called allocated: between LeadingFrame and OwnFrame the innermost
// Python code that is not PyTorch's, if a module of a model runs it, else the innermost at all. -1
// where the program's own line called PyTorch.
int LibraryFrame(const std::vector<FrameText>& frames);

// The callers of OwnFrame that a person wants to see, from the inside out: those of the program, and
// between two of them the one function of a library that the program called. Where none is the
// program's, all that are no noise.
std::vector<int> Callers(const std::vector<FrameText>& frames);

// PyTorch's call of a module of a model; what it calls is the module's forward function, perhaps
// through a wrapper.
bool IsModuleCall(const FrameText& frame);

// Of frames that many stacks share.
using FrameTextPointers = std::vector<const FrameText*>;
int LeadingFrame(const FrameTextPointers& frames);
int OwnFrame(const FrameTextPointers& frames);
int LibraryFrame(const FrameTextPointers& frames);

// The library that took the memory ("NCCL"): of the innermost frame that is a known library's.
// kTheProgram where none is; "" without frames.
std::string LibraryOf(const std::vector<FrameText>& frames);
inline constexpr char kTheProgram[] = "the program";
// "" where none is.
std::string KnownLibraryOf(const std::vector<FrameText>& frames);

// Memory that a backward pass makes again, because checkpointing had not kept it: the stack passes
// through torch/utils/checkpoint.py on its way back into the forward pass.
bool IsRecomputation(const std::vector<FrameText>& frames);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_STACKS_FRAMES_H_
