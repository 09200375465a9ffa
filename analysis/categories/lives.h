// analysis/categories/lives.h
//
// Lives: how long each piece of memory lives, measured in phases and steps of the training loop,
// and in which phase it was born. Without a loop, backward passes are the measure. Without those,
// all freed memory counts as having lived for one phase, except memory that existed before the
// first module was called and is freed when nothing is allocated any more, as at the end of a
// program, and memory that lives for several steps of a loop that only infers.
//
//   steps of the loop   |------- 1 -------|------- 2 -------|------- 3 -------| ...
//   phases               F    B     O       F    B     O       F    B     O
//   kPhase                |-|
//   kPass                     |--optimizer in a hook--|
//   kAcross               |----|                |--------|
//   kSteps                          |-----------------------|
//   kLong               |----------------------------------------------------- ...
//   kOpen                                                      |-- end of the recording
//
// Thread safety: const methods from any thread. Cost: one walk over the steps of a trace.

#ifndef GMT_ANALYSIS_CATEGORIES_LIVES_H_
#define GMT_ANALYSIS_CATEGORIES_LIVES_H_

#include <cstdint>
#include <vector>

#include "analysis/loop/phase_spans.h"
#include "analysis/loop/phases.h"
#include "analysis/loop/stack_phases.h"
#include "analysis/trace/row_kinds.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

enum class Lifespan : uint8_t {
  kPhase,   // freed in the phase in which it was born
  kPass,    // freed in the same backward pass, after an optimizer that ran inside it
  kAcross,  // freed in a later phase of the same step or at the beginning of the next
  kSteps,   // freed one or two steps later
  kLong,    // lives three steps or more
  kOpen,    // unknown: the recording ended, or memory ran out
};

// Freed before the phase of its birth ended.
inline bool IsShort(Lifespan life) { return life == Lifespan::kPhase || life == Lifespan::kPass; }

enum class Born : uint8_t {
  kStart,    // before the first module of a step was called
  kForward,  // outside of backward passes and optimizers
  kBackward,
  kOptimizer,
};

struct RowLife {
  Lifespan life : 3;
  Born born : 2;
  bool before_training : 1;   // before the first backward pass
  bool crosses_backward : 1;  // a backward pass began while it lived
  bool crosses_optimizer : 1;
  bool crosses_passes : 1;  // enough backward passes began while it lived to count as a long life
  bool crosses_steps : 1;   // as many steps ended while it lived, in a recording without training
  bool ran_out : 1;         // memory ran out while it lived, in the phase of its birth
  bool dies_backward : 1;   // freed in a backward pass
  bool dies_optimizer : 1;  // ... in an optimizer
  bool dies_at_once : 1;    // freed before anything else was born after its phase
  uint8_t unused : 2;       // so that each bit has a value
};

class StackHints;  // analysis/categories/stack_hints.h

class Lives {
 public:
  // `hints`, `phases`: what the stacks show; used only by the constructor.
  Lives(const Trace& trace, const RowKinds& kinds, const Cycles& cycles, const PhaseSpans& spans,
        StackHints& hints, StackPhases& phases);

  const RowLife& Of(RowId row) const { return lives_[row]; }
  // The number of the backward pass in which a row was born, or of the last one before.
  uint32_t PassOf(RowId row) const { return segments_[birth_segment_[row]].passes; }
  // Frees what Of() and PassOf() return, which must not be called any more.
  void ForgetRows() {
    birth_segment_ = std::vector<uint32_t>();
    lives_ = std::vector<RowLife>();
  }
  bool has_training() const { return has_backward_ || has_optimizer_; }
  bool has_backward() const { return has_backward_; }

 private:
  // The recording, split at every beginning and end of a phase.
  struct Segment {
    Step begin = 0, end = 0;
    Phase phase = Phase::kOther;  // kBackward, kOptimizer; kOther between them
    uint32_t pass = 0;            // of kBackward
    uint32_t passes = 0;          // backward passes begun so far, including this one
    uint32_t optimizers = 0;      // segments of optimizers up to here
    uint32_t cycle = 0;
    bool is_before_training = false;
  };
  void CutSegments(const Cycles& cycles, const PhaseSpans& spans);
  void AddSegment(Step begin, Step end, Phase phase, uint32_t pass);
  void NumberCycles(const Cycles& cycles);
  Step LastBirthOfABlock() const;
  void Walk(const RowKinds& kinds, StackHints& hints, StackPhases& phases);
  void AddBirth(RowId row, uint32_t segment, StackHints& hints, StackPhases& phases);
  Born BornIn(RowId row, uint32_t segment, StackHints& hints, StackPhases& phases);
  void AddDeath(RowId row, uint32_t segment, Step step, bool ran_out);
  void AddOpen(RowId row);
  Lifespan LifeOf(RowId row, uint32_t dies_in, bool freed) const;
  bool CountsAsFreed(RowId row, uint32_t dies_in) const;
  void CountSteps(const Cycles& cycles);

  const Trace& trace_;
  const KindProperty is_block_;
  std::vector<Segment> segments_;
  std::vector<uint32_t> birth_segment_;  // by row
  std::vector<RowLife> lives_;
  bool has_backward_ = false, has_optimizer_ = false;
  uint32_t last_phase_ = 0;  // the last segment that is a backward pass or an optimizer
  // State of the walk.
  bool module_called_ = false;
  uint32_t module_segment_ = 0;
  Step last_birth_ = 0;
  Step end_of_births_ = 0;  // the last birth in the recording
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_LIVES_H_
