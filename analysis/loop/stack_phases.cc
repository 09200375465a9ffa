#include "analysis/loop/stack_phases.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "analysis/stacks/frames.h"

namespace gmt::analysis {
namespace {

std::string_view LastName(std::string_view qualified) {
  return qualified.substr(qualified.rfind('.') + 1);
}

// Files of optimizers: PyTorch's, and those of packages with their own optimizers.
bool IsOptimizerFile(std::string_view file) {
  constexpr std::string_view kFolders[] = {"/torch/optim/",
                                           "/torch/distributed/optim/",
                                           "/apex/optimizers/",
                                           "/bitsandbytes/optim/",
                                           "/deepspeed/ops/",
                                           "/deepspeed/runtime/zero/",
                                           "/megatron/core/optimizer/",
                                           "/transformer_engine/pytorch/optimizers/"};
  // Not optimizers, although in the same directory.
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

// Code that optimizers call internally: their packages, and code compiled for them.
bool IsOfOptimizerPackages(std::string_view file) {
  constexpr std::string_view kFolders[] = {
      "/torch/",    "/torchao/", "/apex/",          "/bitsandbytes/",      "/deepspeed/",
      "/megatron/", "/triton/",  "/torchinductor_", "/transformer_engine/"};
  return std::any_of(std::begin(kFolders), std::end(kFolders), [&](std::string_view folder) {
    return file.find(folder) != std::string_view::npos;
  });
}

// PyTorch's wrapper around each optimizer's step, including the program's own classes.
bool IsStepWrapper(const FrameText& frame) {
  return frame.is_python() && frame.file.ends_with("torch/optim/optimizer.py") &&
         LastName(frame.function) == "wrapper";
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

uint8_t StackPhases::OfFrameText(const FrameText& text) {
  if (IsStepWrapper(text)) return kStepWrapper;
  const auto phase = static_cast<uint8_t>(OfText(text));
  if (phase != static_cast<uint8_t>(StackPhase::kNone)) return phase;
  if (IsModuleCall(text)) return kModuleCall;
  if (!text.is_python() || IsOfOptimizerPackages(text.file)) return phase;
  return LastName(text.function) == "step" ? kProgramStep : kProgram;
}

uint8_t StackPhases::OfFrame(uint32_t frame) {
  if (frame > definitions_.frame_count()) return static_cast<uint8_t>(StackPhase::kNone);
  if (frame >= by_frame_.size()) by_frame_.resize(frame + size_t{1}, kNotAsked);
  uint8_t& known = by_frame_[frame];
  if (known == kNotAsked) {
    known = static_cast<uint8_t>(StackPhase::kNone);
    for (const FrameText& text : DescribeFrame(definitions_, frame)) {
      known = OfFrameText(text);
      if (known != static_cast<uint8_t>(StackPhase::kNone)) break;
    }
  }
  return known;
}

StackPhase StackPhases::Find(uint32_t stack) {
  if (stack == 0 || stack > definitions_.stack_count()) return StackPhase::kNone;
  if (stack >= by_stack_.size()) by_stack_.resize(stack + size_t{1}, kNotAsked);
  StackPhase phase = StackPhase::kNone;
  uint8_t program = 0;  // the outermost of the program's frames so far
  bool calls_module = false;
  for (const uint32_t frame : definitions_.StackFrames(stack)) {
    const uint8_t of_frame = OfFrame(frame);
    if (of_frame == kProgram || of_frame == kProgramStep) {
      program = of_frame;
    } else if (of_frame == kModuleCall) {
      calls_module = true;
    } else if (of_frame == kStepWrapper) {
      const bool is_optimizers = program == 0 || (program == kProgramStep && !calls_module);
      phase = is_optimizers ? StackPhase::kOptimizer : StackPhase::kNone;
      break;
    } else if (of_frame != static_cast<uint8_t>(StackPhase::kNone)) {
      phase = static_cast<StackPhase>(of_frame);
      if (phase == StackPhase::kOptimizer && program != 0) phase = StackPhase::kNone;
      break;
    }
  }
  by_stack_[stack] = static_cast<uint8_t>(phase);
  return phase;
}

}  // namespace gmt::analysis
