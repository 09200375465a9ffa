// analysis/estimate/layer_bytes.h
//
// LayerRules: how many bytes per token the modules of one layer keep for the backward pass, and
// compute in it. The rules follow PyTorch's operators and the modules of transformers; they are
// compared with training in tests/evaluate/estimate.
//
// Ownership: the model and the plan must outlive a LayerRules. Thread safety: pure functions.

#ifndef GMT_ANALYSIS_ESTIMATE_LAYER_BYTES_H_
#define GMT_ANALYSIS_ESTIMATE_LAYER_BYTES_H_

#include <algorithm>
#include <cstdint>

#include "analysis/estimate/estimate.h"
#include "analysis/estimate/model.h"

namespace gmt::analysis {

// Bytes of one number: of a weight, its gradient, a number of state, a master weight.
struct NumberSizes {
  double weight = 4, gradient = 4, state = 4, master = 0;
  double compute = 4;   // bytes per number in matrix products
  double residual = 4;  // between layers
};
NumberSizes SizesOf(const Plan& plan);

// Whether attention is computed without a fused kernel.
bool IsEager(const Model& model, const Plan& plan);

// Bytes per token. What a layer keeps for its backward pass, and what that computes on top.
struct LayerBytes {
  double attention = 0;      // including its norm
  double probabilities = 0;  // those of eager attention, which are part of `attention`
  double mlp = 0;            // including its norm
  double attention_work = 0, mlp_work = 0;
  double forward_work = 0;  // what its forward pass computes, if it keeps nothing
  double Kept() const { return attention + mlp; }
  // The MLP's backward pass comes first, and frees what it kept.
  double Work() const { return std::max(mlp_work, attention_work - mlp); }
};

class LayerRules {
 public:
  LayerRules(const Model& model, const Plan& plan);

  // LayerNorm keeps its input. RMSNorm of transformers keeps the input in fp32 and, to train its
  // factors, the normalised input.
  double NormBytes() const;

  // The input of linear modules. Autocast casts what a norm returns in fp32 for each of them, and
  // adapters of 16-bit weights each cast it to fp32.
  double InputBytes(double modules) const;

  LayerBytes Bytes(uint64_t attentions) const;

 private:
  double Hidden() const { return static_cast<double>(model_.hidden); }
  double Inner() const { return static_cast<double>(model_.inner); }
  double Scores() const { return static_cast<double>(model_.heads * plan_.length); }
  bool SoftmaxIsFp32() const { return !is_sixteen_ || model_.softmax_in_fp32; }
  double InputSize() const { return has_casting_adapters_ ? 4 : sizes_.compute; }
  double Cast() const { return sizes_.compute == 2 ? 2 : 0; }

  // Queries, keys, values and the result. Eager attention repeats grouped keys and values.
  double QkvBytes() const;

  // The softmax, and its cast to 16 bit; with dropout a mask and a product instead of the cast.
  double ProbabilityBytes() const;

  // The input of the second matrix, and what the activation keeps.
  double MlpBytes() const;

  const Model& model_;
  const Plan& plan_;
  const NumberSizes sizes_;
  const bool is_mixed_, is_sixteen_, has_casting_adapters_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_ESTIMATE_LAYER_BYTES_H_
