// analysis/oom/optimizer.h
//
// The optimizer that a program created, and how much state its class keeps. PyTorch reports the
// constructor of a process's first optimizer; its stack names the class:
//
//   Optimizer.__init__   torch/optim/optimizer.py
//   Adam.__init__        torch/optim/adam.py
//   AdamW.__init__       torch/optim/adamw.py
//   main                 train.py:30
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_OOM_OPTIMIZER_H_
#define GMT_ANALYSIS_OOM_OPTIMIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/examination/examination.h"

namespace gmt::analysis {

struct Optimizer {
  std::string name;   // its class, "AdamW"; empty if none was seen
  std::string place;  // the line that created it, "train.py:30"; empty if unknown
  // Whether the state of this class is known; otherwise it is assumed to be that of Adam.
  bool is_known = false;
  // Tensors of state for each parameter that gets a gradient. Classes keep more than the least if
  // they are used with momentum.
  uint64_t least_state = 2, most_state = 2;
  bool makes_state_at_once = false;  // in its constructor, not in its first step
  // Whether its step with foreach=True has one temporary tensor for each parameter, at the same
  // time; false if that depends on its options, or is not known.
  bool has_foreach_temporaries = false;
};

// Returns the first optimizer that was created before this moment.
Optimizer FindOptimizer(const Examination& examination, int64_t t_ns);

// The same from the stack of its constructor, innermost frame first.
Optimizer OptimizerOf(const std::vector<FrameText>& constructor);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_OPTIMIZER_H_
