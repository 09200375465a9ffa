// analysis/testing/training_loop.h
//
// For tests: a training loop of a small model, with all of its memory. Its peak of 73 MiB is in the
// forward pass of each step after the first, whose gradients still exist then.
//
//   parameters 8, Adam's state 16, gradients 8, batch 1, activations 24 + 16 MiB

#ifndef GMT_ANALYSIS_TESTING_TRAINING_LOOP_H_
#define GMT_ANALYSIS_TESTING_TRAINING_LOOP_H_

#include <cstdint>

#include "analysis/testing/training_script.h"
#include "format/event.h"
#include "format/units.h"

namespace gmt::analysis {

struct TrainingLoop {
  static constexpr uint64_t kPeak = 73 * kMiB;

  TrainingScript script;
  bool zero_grad_after_step = false;
  uint64_t temporary_mib = 8;    // the optimizer's step allocates and frees this much
  bool without_caching = false;  // PYTORCH_NO_CUDA_MEMORY_CACHING: tensors are driver memory

  void Train(uint64_t steps) {
    script.calls_driver = without_caching;
    Add(kWeights, 8, script.Parameter());
    if (without_caching) script.script().Role(kWeights << 32, format::kRoleParameter);
    for (uint64_t step = 1; step <= steps; ++step) {
      const bool is_first = step == 1;
      Add(kBatch, 1, script.Batch());
      Add(kFirst, 24, script.InForward());
      Add(kSecond, 16, script.InForward("at::native::gelu(at::Tensor const&)"));
      if (!is_first && !zero_grad_after_step) Free(kGradients);
      script.Backward([&] {
        Free(kSecond);
        Add(kGradients, 8, script.InBackward("AddmmBackward0"));
        Free(kFirst);
      });
      script.Optimizer([&] {
        if (is_first) {
          Add(kState, 8, script.State());
          Add(kState + 1, 8, script.State());
        }
        Add(kTemporary, temporary_mib,
            script.InOptimizer("_multi_tensor_adam", "at::native::_foreach_add"));
        Free(kTemporary);
      });
      if (zero_grad_after_step) Free(kGradients);
      Free(kBatch);
    }
  }

 private:
  enum : uint64_t { kWeights = 1, kBatch, kFirst, kSecond, kGradients, kTemporary, kState };

  void Add(uint64_t place, uint64_t mib, uint32_t stack) {
    if (without_caching) {
      script.script().Alloc(place << 32, mib * kMiB).stack = stack;
    } else {
      script.Block(place << 32, mib * kMiB, stack);
    }
  }
  void Free(uint64_t place) {
    if (without_caching) {
      script.script().Free(place << 32, 0);
    } else {
      script.Free(place << 32);
    }
  }
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TESTING_TRAINING_LOOP_H_
