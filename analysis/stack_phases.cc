#include "analysis/stack_phases.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "analysis/frames.h"

namespace gmt::analysis {
namespace {

std::string_view LastName(std::string_view qualified) {
  return qualified.substr(qualified.rfind('.') + 1);
}

// Files of optimizers: PyTorch's, and of packages that bring their own.
bool IsOptimizerFile(std::string_view file) {
  constexpr std::string_view kFolders[] = {"/torch/optim/",
                                           "/torch/distributed/optim/",
                                           "/apex/optimizers/",
                                           "/bitsandbytes/optim/",
                                           "/deepspeed/ops/",
                                           "/deepspeed/runtime/zero/",
                                           "/megatron/core/optimizer/",
                                           "/transformer_engine/pytorch/optimizers/"};
  // They lie beside the optimizers and are none.
  if (file.ends_with("/lr_scheduler.py") || file.ends_with("/swa_utils.py")) return false;
  return std::any_of(std::begin(kFolders), std::end(kFolders), [&](std::string_view folder) {
    return file.find(folder) != std::string_view::npos;
  });
}

bool IsOptimizerFunction(std::string_view function) {
  return function == "step" || function == "_init_group" || function == "initialize_state" ||
         function == "init_state" || function.starts_with("_multi_tensor_") ||
         function.starts_with("_single_tensor_") || function.starts_with("_fused_");
}

// Code that optimizers call without leaving themselves: their packages, and what is compiled for them.
bool IsOfOptimizerPackages(std::string_view file) {
  constexpr std::string_view kFolders[] = {"/torch/",        "/torchao/",        "/apex/",
                                           "/bitsandbytes/", "/deepspeed/",      "/megatron/",
                                           "/triton/",       "/torchinductor_", "/transformer_engine/"};
  return std::any_of(std::begin(kFolders), std::end(kFolders), [&](std::string_view folder) {
    return file.find(folder) != std::string_view::npos;
  });
}

StackPhase OfText(const FrameText& frame) {
  if (!frame.is_python()) {
    return frame.function.starts_with("torch::autograd::Engine::evaluate_function")
               ? StackPhase::kBackward
               : StackPhase::kNone;
  }
  if (IsRecomputation({frame})) return StackPhase::kRecomputed;
  if (IsOptimizerFile(frame.file) && IsOptimizerFunction(LastName(frame.function))) {
    return StackPhase::kOptimizer;
  }
  return StackPhase::kNone;
}

}  // namespace

StackPhases::StackPhases(const format::Definitions& definitions) : definitions_(definitions) {}

uint8_t StackPhases::OfFrame(uint32_t frame) {
  if (frame > definitions_.frame_count()) return static_cast<uint8_t>(StackPhase::kNone);
  if (frame >= by_frame_.size()) by_frame_.resize(frame + size_t{1}, kNotAsked);
  uint8_t& known = by_frame_[frame];
  if (known == kNotAsked) {
    known = static_cast<uint8_t>(StackPhase::kNone);
    for (const FrameText& text : DescribeFrame(definitions_, frame)) {
      known = static_cast<uint8_t>(OfText(text));
      if (known != static_cast<uint8_t>(StackPhase::kNone)) break;
      if (text.is_python() && !IsOfOptimizerPackages(text.file)) known = kProgram;
    }
  }
  return known;
}

StackPhase StackPhases::Find(uint32_t stack) {
  if (stack == 0 || stack > definitions_.stack_count()) return StackPhase::kNone;
  if (stack >= by_stack_.size()) by_stack_.resize(stack + size_t{1}, kNotAsked);
  StackPhase phase = StackPhase::kNone;
  bool by_program = false;
  for (const uint32_t frame : definitions_.StackFrames(stack)) {
    const uint8_t of_frame = OfFrame(frame);
    by_program = by_program || of_frame == kProgram;
    if (of_frame == kProgram) continue;
    phase = static_cast<StackPhase>(of_frame);
    if (phase == StackPhase::kOptimizer && by_program) phase = StackPhase::kNone;
    if (of_frame != static_cast<uint8_t>(StackPhase::kNone)) break;
  }
  by_stack_[stack] = static_cast<uint8_t>(phase);
  return phase;
}

}  // namespace gmt::analysis
