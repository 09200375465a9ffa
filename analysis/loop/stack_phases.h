// analysis/loop/stack_phases.h
//
// StackPhases: determines the phase of a training step from a stack alone, by its frames of
// PyTorch's engine, checkpointing and optimizers. The innermost such frame decides: an optimizer
// that a hook of the backward pass calls is an optimizer, and what checkpointing recomputes belongs
// to the backward pass that requested it. The program's own code that an optimizer calls, a
// closure, is not an optimizer.
//
//   at::mm < MmBackward0::apply < Engine::evaluate_function                        backward
//   at::linear < Net.forward < recompute_fn (checkpoint.py) < ... evaluate_function  recomputed
//   at::zeros_like < Adam._init_group (optim/adam.py) < ...                         optimizer
//   at::linear < Net.forward < closure (train.py) < Adam.step (optim/adam.py)       none
//   at::zeros_like < step (my_adam.py) < wrapper (optim/optimizer.py)               optimizer
//   at::linear < Net.forward < main                                                 none
//
// Thread safety: one thread at a time. Cost: each frame and each stack is examined once.

#ifndef GMT_ANALYSIS_LOOP_STACK_PHASES_H_
#define GMT_ANALYSIS_LOOP_STACK_PHASES_H_

#include <cstdint>
#include <vector>

#include "analysis/stacks/frames.h"
#include "format/definitions.h"

namespace gmt::analysis {

enum class StackPhase : uint8_t { kNone, kBackward, kRecomputed, kOptimizer };

class StackPhases {
 public:
  // REQUIRES: `definitions` outlives this object.
  explicit StackPhases(const format::Definitions& definitions);

  // Returns kNone for 0 and for undefined ids.
  StackPhase Of(uint32_t stack) {
    const bool is_known = stack < by_stack_.size() && by_stack_[stack] != kNotAsked;
    return is_known ? static_cast<StackPhase>(by_stack_[stack]) : Find(stack);
  }

 private:
  StackPhase Find(uint32_t stack);
  uint8_t OfFrame(uint32_t frame);
  static uint8_t OfFrameText(const FrameText& text);

  static constexpr uint8_t kNotAsked = 0xff;
  static constexpr uint8_t kProgram = 0x80;      // a frame of the program's own code
  static constexpr uint8_t kProgramStep = 0x81;  // ... possibly of its own optimizer
  static constexpr uint8_t kStepWrapper = 0x82, kModuleCall = 0x83;
  const format::Definitions& definitions_;
  std::vector<uint8_t> by_frame_, by_stack_;  // StackPhase, or one of these
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_STACK_PHASES_H_
