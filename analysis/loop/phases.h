// analysis/loop/phases.h
//
// The steps of a training loop and the phases inside them, from what a recording reports. If it
// reports no steps, they are inferred from recurring stacks (analysis/loop/cycle_anchor.h) and
// marked as inferred.
//
//   record_function   |zero_grad|                          |Optimizer.step|
//   backward                              |----------|
//   phase              other  | forward  | backward  |other| optimizer   |    of the first step: init |...
//   step              ---------------------- 7 --------------------------> ends with the optimizer's
//
// A step ends at the first of the following that occurs at least twice: a mark called "step" (the
// time between two is a step), the next range that is named after a step ("step 7", "iteration#7",
// "train_step"; of several such names the one in which most time is spent), the optimizer's step,
// its zero_grad, a backward pass. A process with several optimizers steps when the last of them
// has: the most frequent call site counts, and the latest of equally frequent ones.
//
// The name of a record_function cannot be read in the process; the Python frames of its stack
// identify its caller. Ranges of imported recordings have their names.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LOOP_PHASES_H_
#define GMT_ANALYSIS_LOOP_PHASES_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/row_kinds.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

enum class Phase : uint8_t {
  kForward,
  kBackward,
  kOptimizer,
  kOther,
  kEvaluation,  // a loop inside the training loop: validation
  kInit,        // before the loop; part of its first step
};
inline constexpr size_t kPhases = 6;

// "forward", "backward", "optimizer", "other", "evaluation", "init".
std::string_view NameOf(Phase phase);
// For sentences: "in forward"; "outside of the phases" for kOther.
std::string InPhase(Phase phase);

struct PhaseSpans;  // analysis/loop/phase_spans.h

// The kind of a range: "backward", "Optimizer.step", "Optimizer.zero_grad", "DataLoader.next",
// "ProfilerStep", "FUNCTION (FILE:LINE)" of the program's own record_function, otherwise its name.
std::string KindOfRange(const Range& range, const format::Definitions& definitions);

// Returns the name of a range that is named after a step, without its number: "Train_Step #12" ->
// "train_step". Returns "" if the name is not that of a step.
std::string NameOfStep(std::string_view name);

// A device in one phase of one step.
struct PhaseUse {
  bool present = false;
  uint64_t peak = 0;  // bytes
  // Live bytes at its end minus those at its beginning; the mean if the phase occurs several times.
  int64_t change = 0;
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
  Step begin = 0, end = 0;  // covers steps begin+1..end
  int64_t begin_t_ns = 0, end_t_ns = 0;
};

struct DeviceCycles {
  int32_t device = 0;
  std::vector<CycleUse> cycles;
};

struct Cycles {
  // "mark step", "range train_step", "range step (DOMAIN)", "Optimizer.step", ...; empty if no
  // steps were found.
  std::string source;
  bool inferred = false;  // from recurring stacks (analysis/loop/cycle_anchor.h), not from recorded
                          // marks or ranges
  std::vector<Cycle> cycles;
  std::vector<DeviceCycles> devices;  // bytes in a framework's blocks; without a framework, all
                                      // bytes
};

// `spans`: FindPhaseSpans() of the trace.
Cycles FindCycles(const Trace& trace, const RowKinds& kinds, const format::Definitions& definitions,
                  const PhaseSpans& spans);

// Medians over all steps except the first, which includes initialisation.
struct TypicalCycle {
  uint64_t peak = 0;
  Phase peak_phase = Phase::kOther;  // the most frequent one
  uint64_t steps_with_peak_phase = 0, steps = 0;
  int64_t growth = 0;  // from one step's end to the next step's end
  std::array<PhaseUse, kPhases> phases;
};

// REQUIRES: `device` has steps.
TypicalCycle TypicalOf(const DeviceCycles& device);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_PHASES_H_
