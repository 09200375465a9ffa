// analysis/whatif/changes.h
//
// Changes of a training program, as changes of what it holds (program_change.h): which blocks
// become smaller or larger, end earlier, are recomputed or not allocated.
//
//   Changes changes(examination, categories, 0);
//   ProgramChange change(trace, 0);
//   changes.SetGradientsToNone(change);   // OK, or why it changes nothing
//   changes.HalveBatch(change);           // applied to what the first one left
//
// What is not modelled in favour of a change (a workspace that also shrinks) makes its saving
// larger than computed; what a change costs in memory (weights cast to half precision, recomputed
// layers, gradients kept through micro-batches) is part of it. docs/advise.md has the rules.
//
// Each returns FAILED_PRECONDITION with a reason, as part of a sentence, if it does not apply.
//
// Ownership: examination and categories must outlive it. Thread safety: one thread at a time.
// Cost: one walk over the rows each; checkpointing a few.

#ifndef GMT_ANALYSIS_WHATIF_CHANGES_H_
#define GMT_ANALYSIS_WHATIF_CHANGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/categories/tensor_facts.h"
#include "analysis/examination/examination.h"
#include "analysis/leaks/leaks.h"
#include "analysis/loop/cycle_births.h"
#include "analysis/loop/phase_spans.h"
#include "analysis/whatif/autocast.h"
#include "analysis/whatif/batch_shapes.h"
#include "analysis/whatif/layer_runs.h"
#include "analysis/whatif/program_change.h"

namespace gmt::analysis {

// Returns the status of a change that does not apply to a program, and why.
absl::Status NotApplicable(std::string_view why);

// What 8-bit optimizers (bitsandbytes) keep of a float32 state: a byte for each number, and a
// float32 scale for each 256 of them. Small tensors stay as they are.
uint64_t EightBitBytes(uint64_t state_bytes);
// A part of a block that is divided evenly, rounded up as PyTorch's allocator does.
uint64_t PartOf(uint64_t bytes, uint64_t divisor);

// The class of containers that torch.utils.checkpoint.checkpoint_sequential() checkpoints.
inline constexpr char kSequential[] = "Sequential";

struct CheckpointedLayers {
  std::string name;    // "Block"
  std::string caller;  // "GPT.forward (gpt.py:30)"; "" if unknown
  // At the peak: how many hold activations, and how many bytes.
  uint64_t count = 0, bytes = 0;
};

class Changes {
 public:
  Changes(const Examination& examination, const Categories& categories, int32_t device);

  // Gradients end with the optimizer's step.
  absl::Status SetGradientsToNone(ProgramChange& change) const;
  // What the suspect keeps ends with the step of its birth.
  absl::Status FixLeak(const LeakSuspect& suspect, ProgramChange& change) const;
  // A fused optimizer allocates nothing but its state; one without `foreach` has temporaries for
  // one parameter at a time.
  absl::Status FuseOptimizer(bool is_fused, ProgramChange& change) const;
  // foreach=True for an Adam: at once, its step has a temporary tensor for each parameter.
  absl::Status UseForeach(ProgramChange& change) const;
  // Autocast: what matrix products and convolutions save is halved, and so are weights, as copies.
  absl::Status UseHalfPrecision(ProgramChange& change) const;
  // scaled_dot_product_attention: no tensor is square in the sequence. `facts`: at the peak.
  absl::Status UseFlashAttention(const TensorFacts& facts, ProgramChange& change) const;
  // An operator whose input is freed directly after it writes its result into the input.
  absl::Status ComputeInPlace(ProgramChange& change) const;
  // More, fewer, longer or shorter samples: activations, temporaries and inputs grow as their
  // shapes do, without shapes in proportion to the number of samples.
  absl::Status ScaleInputs(const InputChange& inputs, ProgramChange& change) const;
  // Two micro-batches of half the size for each batch.
  absl::Status HalveBatch(ProgramChange& change) const;
  // The layers keep their outputs only; the rest is computed again in the backward pass. `layers`:
  // the name of their class; "": those with which the peak falls most.
  absl::StatusOr<CheckpointedLayers> Checkpoint(const std::string& layers,
                                                ProgramChange& change) const;
  // The optimizers of bitsandbytes: state in 8 bits, and no temporaries.
  absl::Status UseEightBitState(ProgramChange& change) const;
  // Parameters, gradients, optimizer state and what the optimizer computes with are divided among
  // `count` GPUs. Parameters are gathered layer by layer, gradients reduced so.
  absl::Status Shard(uint64_t count, ProgramChange& change) const;
  // Optimizer state is in host memory.
  absl::Status OffloadState(ProgramChange& change) const;

  // The rows that a framework's allocator has provided on the device; without such an allocator,
  // those of the driver.
  bool IsBlock(RowId row) const;
  const BatchShapes& Shapes() const;

 private:
  // Bytes of parameters that are gathered at once: of one layer, and of what is in no layer.
  struct Gathered {
    uint64_t layer = 0, rest = 0;
    const Layers* layers = nullptr;  // nullptr if the model is gathered as a whole
  };

  Gathered FindGathered() const;
  void GatherLayers(const Gathered& gathered, ProgramChange& change) const;
  std::vector<Step> HalveGradientsOfProducts(const absl::flat_hash_map<RowId, Savers>& savers,
                                             ProgramChange& change) const;
  Category CategoryOf(RowId row) const { return categories_.Of(row).category; }
  const PhaseSpan* SpanAt(Step birth) const;
  // The end of the span before this step; 0 if none.
  Step EndBefore(Step step) const;
  // Whether a block is born after the step `after` and before the step `before`.
  bool IsAnythingBorn(Step after, Step before) const;
  // A temporary of an optimizer's step.
  bool IsOfOptimizerStep(RowId row) const;
  bool IsFloat(RowId row) const;
  bool IsMatrix(RowId row) const;
  const std::vector<Layers>& KindsOfLayers() const;
  // Calls visit(row) for each block of the device.
  template <typename Visit>
  void ForEachBlock(Visit visit) const {
    for (RowId row = 0; row < rows_.count(); ++row) {
      if (IsBlock(row)) visit(row);
    }
  }

  const Examination& examination_;
  const Trace& trace_;
  const Rows& rows_;
  const Categories& categories_;
  const int32_t device_;
  const Births births_;
  const PhaseSpans& spans_;
  mutable std::optional<std::vector<Layers>> layers_;
  mutable std::optional<BatchShapes> shapes_;
  std::vector<Step> optimizer_ends_;  // the last one of each step of the loop
  bool has_types_ = false;            // whether the types of tensors were recorded
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_CHANGES_H_
