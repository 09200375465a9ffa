// analysis/whatif/batch_shapes.h
//
// BatchShapes: how the tensors of a program grow with its inputs, by their shapes.
//
//   recorded: 8 samples of 128 tokens         16 samples     256 tokens   16 samples of 256 tokens
//   [8, 128, 768]                                  x2             x2            x4
//   [96, 128, 128] (12 heads)                      x2             x4            x8
//   [768, 3072] (a cast weight)                    x1             x1            x1
//
// What a dimension counts is read from its size, in the pass with the highest peak, because the
// size of the inputs is known there (categories/tensor_facts.h). Tensors of other passes, whose
// inputs may be of another size, grow as those that were allocated at the same place in that pass.
// A size that may be chance is not counted: a multiple of the samples in the shape of a parameter,
// or in a tensor of one dimension; and if the model has as many features as tokens, a second
// dimension of that size.
//
// Ownership: examination and categories must outlive it. Thread safety: one thread at a time.
// Cost: one walk over the rows, and over what is held at one moment.

#ifndef GMT_ANALYSIS_WHATIF_BATCH_SHAPES_H_
#define GMT_ANALYSIS_WHATIF_BATCH_SHAPES_H_

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/categories/categories.h"
#include "analysis/categories/tensor_facts.h"
#include "analysis/examination/examination.h"
#include "analysis/loop/phase_spans.h"

namespace gmt::analysis {

// Other inputs than the recorded ones.
struct InputChange {
  double samples = 1, tokens = 1;  // times as many
  uint64_t bucket = 0;             // lengths are padded to a multiple of it; 0: they are not

  bool has_tokens() const { return tokens != 1 || bucket > 0; }
};

class BatchShapes {
 public:
  BatchShapes(const Examination& examination, const Categories& categories, const PhaseSpans& spans,
              int32_t device);

  // The recorded inputs; nullopt if their size is not known: no types and shapes are recorded, or
  // no size explains nearly all of the pass.
  const std::optional<BatchFacts>& batch() const { return batch_; }
  // Whether the pass for whose inputs batch() stands contains that step.
  bool IsInPass(Step step) const { return pass_.begin < step && step <= pass_.end; }

  // How many times as large the tensor of that row is with other inputs; 1 if its shape does not
  // contain them. REQUIRES: the batch is known.
  double FactorOf(RowId row, const InputChange& inputs) const;

 private:
  // Stack, stack of the forward pass, number of dimensions.
  using Place = std::tuple<uint32_t, uint32_t, size_t>;

  bool FindBatch(const Categories& categories, const PhaseSpans& spans, int32_t device);
  void FindSizes(const Categories& categories, int32_t device);
  void FindOtherSamples(int32_t device);
  void FindPlaces(int32_t device);
  const std::vector<uint64_t>& SizesOf(RowId row) const;
  std::vector<Dimension> ByValue(const std::vector<uint64_t>& sizes) const;

  const Examination& examination_;
  const Rows& rows_;
  std::optional<BatchFacts> batch_;
  Cycle pass_;  // the forward and backward pass with the highest peak
  absl::flat_hash_set<std::vector<uint64_t>> parameters_;  // their sizes
  absl::flat_hash_set<uint64_t> other_samples_;            // how many samples other inputs have
  // Whether the model has as many features as there are tokens.
  bool is_as_wide_as_long_ = false;
  absl::flat_hash_map<Place, std::vector<Dimension>> places_;
  mutable absl::flat_hash_map<uint32_t, std::vector<uint64_t>> sizes_;  // by shape
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_BATCH_SHAPES_H_
