// analysis/loop/phases.h
//
// The steps of a training loop and the phases inside them, from what a recording tells of itself; where
// it tells of no steps, from stacks that recur (analysis/loop/cycle_anchor.h), and then it says so.
//
//   record_function   |zero_grad|                          |Optimizer.step|
//   backward                              |----------|
//   phase              other  | forward  | backward  |other| optimizer   |    of the first step: init |...
//   step              ---------------------- 7 --------------------------> ends with the optimizer's
//
// What ends a step is, in this order: a mark called "step" (the time between two is a step), the next
// range that is named for a step ("step 7", "iteration#7", "train_step"; of several such names the one
// that most of the time is spent in), the optimizer's step, its zero_grad, a backward pass; the first that comes at least twice. A process with several optimizers
// steps when the last of them has: the call site that comes most often, of equals the latest.
//
// A record_function has no name in the process's reach: who made it is told by the Python frames of
// its stack. Ranges of imported recordings have theirs.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LOOP_PHASES_H_
#define GMT_ANALYSIS_LOOP_PHASES_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

enum class Phase : uint8_t {
  kForward,
  kBackward,
  kOptimizer,
  kOther,
  kEvaluation,  // of a loop inside the training loop: validation
  kInit,        // before the loop, in its first step
};
inline constexpr size_t kPhases = 6;

// "forward", "backward", "optimizer", "other", "evaluation", "init".
std::string_view NameOf(Phase phase);

// What a range is: "backward", "Optimizer.step", "Optimizer.zero_grad", "DataLoader.next",
// "ProfilerStep", "FUNCTION (FILE:LINE)" of a record_function of the program's own, else its name.
std::string KindOfRange(const Range& range, const format::Definitions& definitions);

// What a range that is named for a step is called, without its number: "Train_Step #12" -> "train_step".
// Empty where the name is not one of a step.
std::string NameOfStep(std::string_view name);

// A device in one phase of one step.
struct PhaseUse {
  bool present = false;
  uint64_t peak = 0;   // bytes
  int64_t change =
      0;  // bytes live at its end less those at its beginning; the mean if it came often
  uint64_t times = 1;  // forward and backward passes in the step: micro-batches of an accumulation
};

// A device in one step of the training loop.
struct CycleUse {
  uint64_t live_begin = 0, live_end = 0, peak = 0;  // bytes
  Step peak_step = 0;
  Phase peak_phase = Phase::kOther;
  std::array<PhaseUse, kPhases> phases;
};

// A step of the training loop; Step counts births and deaths.
struct Cycle {
  Step begin = 0, end = 0;  // what happened in it: begin+1..end
  int64_t begin_t_ns = 0, end_t_ns = 0;
};

struct DeviceCycles {
  int32_t device = 0;
  std::vector<CycleUse> cycles;
};

struct Cycles {
  // "mark step", "range train_step", "range step (DOMAIN)", "Optimizer.step", ...; empty: no steps
  // were seen.
  std::string source;
  bool inferred = false;  // from stacks that recur (analysis/loop/cycle_anchor.h): nothing told them
  std::vector<Cycle> cycles;
  std::vector<DeviceCycles> devices;  // bytes in blocks of a framework; without any, all bytes
};

Cycles FindCycles(const Trace& trace, const format::Definitions& definitions);

// The middle of all steps but the first, which sets things up.
struct TypicalCycle {
  uint64_t peak = 0;
  Phase peak_phase = Phase::kOther;  // of most steps
  uint64_t steps_with_peak_phase = 0, steps = 0;
  int64_t growth = 0;  // from one step's end to the next one's
  std::array<PhaseUse, kPhases> phases;
};

// REQUIRES: `device` has steps.
TypicalCycle TypicalOf(const DeviceCycles& device);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_PHASES_H_
