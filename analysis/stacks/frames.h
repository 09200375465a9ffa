// analysis/stacks/frames.h
//
// Stacks for display: inlined calls expanded; names and lines if known, otherwise module + offset.
// Also selects the frames that a reader wants to see first.
//
//   at::detail::empty_cuda                      allocator
//   at::native::linear                          library     LeadingFrame: what was called
//   _PyEval_EvalFrameDefault                    interpreter
//   Linear.forward  torch/nn/linear.py          library
//   MLP.forward     transformers/models/gpt.py  library     LibraryFrame: in which part of a library
//   Trainer.train   transformers/trainer.py     library
//   main            train.py:40                 own         OwnFrame: the program's line
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
  std::string function;  // empty if unknown
  std::string file;      // empty if unknown
  uint32_t line = 0;     // 0 if unknown
  std::string language;  // "c++", "python", or the language named in an imported log
  std::string module;    // path; empty if unknown
  uint64_t address = 0;  // of a native frame: in its module, or in memory if that is unknown
  symbols::FrameRole role = symbols::FrameRole::kOwn;

  bool is_noise() const { return symbols::IsNoise(role); }
  bool is_python() const { return language == "python"; }

  // The function; for a node of the autograd graph its class, "MmBackward0"; otherwise
  // "libfoo.so+0x1a2b", otherwise "0x7f0012345678", otherwise "?".
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

// Returns one frame of the recording with the calls that the compiler inlined into it, innermost
// first. Without rules its role is kOwn.
std::vector<FrameText> DescribeFrame(
    const format::Definitions& definitions, uint32_t frame,
    const symbols::FrameRules& rules = symbols::FrameRules::None());

// Removes the noise frames, except LeadingFrame.
std::vector<FrameText> WithoutNoise(std::vector<FrameText> frames);

// Returns the index of the frame that shows what was called: the innermost one that is not noise,
// preferring frames with a name. An operator's frame is chosen if no code of a native library lies
// between it and the caller. Falls back to the innermost frame; -1 without frames.
int LeadingFrame(const std::vector<FrameText>& frames);

// Returns the index of the frame where the program caused the allocation: LeadingFrame or a frame
// further out. The innermost frame of the first of these kinds: the program's own Python code, a
// library's Python code other than PyTorch's, PyTorch's that is not noise, the program's own native
// code, the evaluated node of the autograd graph. Falls back to LeadingFrame.
int OwnFrame(const std::vector<FrameText>& frames);

// Returns the index of the frame where a library that the program called made the allocation:
// between LeadingFrame and OwnFrame the innermost Python code that is not PyTorch's if a module of
// a model runs it, otherwise the innermost of all. -1 if the program's own line called PyTorch.
int LibraryFrame(const std::vector<FrameText>& frames);

// Returns the callers of OwnFrame that a reader wants to see, innermost first: the program's
// frames, and between two of them the one library function that the program called. If none is the
// program's, returns all that are not noise.
std::vector<int> Callers(const std::vector<FrameText>& frames);

// Whether the frame is PyTorch's call of a module of a model. Its callee is the module's forward
// function, perhaps through a wrapper.
bool IsModuleCall(const FrameText& frame);

// For frames that many stacks share.
using FrameTextPointers = std::vector<const FrameText*>;
int LeadingFrame(const FrameTextPointers& frames);
int OwnFrame(const FrameTextPointers& frames);
int LibraryFrame(const FrameTextPointers& frames);

// The library that allocated the memory ("NCCL"): that of the innermost frame of a known library.
// Returns kTheProgram if there is none, "" without frames.
std::string LibraryOf(const std::vector<FrameText>& frames);
inline constexpr char kTheProgram[] = "the program";
// Returns "" if there is none.
std::string KnownLibraryOf(const std::vector<FrameText>& frames);

// Whether the memory is recomputed in a backward pass because checkpointing had not kept it: the
// stack passes through torch/utils/checkpoint.py back into the forward pass.
bool IsRecomputation(const std::vector<FrameText>& frames);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_STACKS_FRAMES_H_
