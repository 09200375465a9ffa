#include "analysis/estimate/layer_bytes.h"

#include <algorithm>

namespace gmt::analysis {

NumberSizes SizesOf(const Plan& plan) {
  NumberSizes sizes;
  if (plan.precision == Precision::kMixed) sizes.compute = 2;
  if (plan.precision != Precision::kSixteen) return sizes;
  sizes.weight = sizes.gradient = sizes.state = sizes.compute = sizes.residual = 2;
  if (plan.fp32_gradients) sizes.gradient = 4;
  if (plan.master_weights) sizes.state = sizes.master = 4;
  return sizes;
}

bool IsEager(const Model& model, const Plan& plan) {
  return plan.attention == Attention::kEager ||
         (plan.precision == Precision::kFp32 && model.kv_heads < model.heads);
}

LayerRules::LayerRules(const Model& model, const Plan& plan)
    : model_(model),
      plan_(plan),
      sizes_(SizesOf(plan)),
      is_mixed_(plan.precision == Precision::kMixed),
      is_sixteen_(plan.precision == Precision::kSixteen),
      has_casting_adapters_(is_sixteen_ && plan.lora > 0) {}

double LayerRules::NormBytes() const {
  const double h = Hidden();
  if (model_.norm == Norm::kLayer) return sizes_.residual * h;
  if (plan_.lora > 0) return 4 * h;
  return is_sixteen_ && model_.norm == Norm::kRms ? (4 + 2) * h : 8 * h;
}

double LayerRules::InputBytes(double modules) const {
  return InputSize() * Hidden() * (is_mixed_ || has_casting_adapters_ ? modules : 1);
}

LayerBytes LayerRules::Bytes(uint64_t attentions) const {
  LayerBytes bytes;
  const double dropped = model_.dropout ? Hidden() : 0;  // a mask of one byte per number
  for (uint64_t i = 0; i < attentions; ++i) {
    bytes.attention += NormBytes() + InputBytes(model_.separate_qkv ? 3 : 1) + QkvBytes() + dropped;
  }
  bytes.probabilities = static_cast<double>(attentions) * ProbabilityBytes();
  bytes.attention += bytes.probabilities;
  bytes.mlp = (model_.shared_norm_input ? 0 : NormBytes()) +
              InputBytes(model_.separate_gate ? 2 : 1) + MlpBytes() + dropped;
  bytes.attention_work = IsEager(model_, plan_) ? Scores() * (SoftmaxIsFp32() ? 8 + Cast() : 4) : 0;
  const bool is_wide = is_mixed_ && model_.activation == Activation::kPythonGelu;
  bytes.mlp_work = Inner() * (model_.gated ? 3 : 2) * (is_wide ? 4 : sizes_.compute) +
                   sizes_.residual * Hidden();
  // Scores, the same in fp32 and their softmax; repeated queries, keys and values.
  const double eager = bytes.attention_work +
                       3 * sizes_.compute * static_cast<double>(model_.heads * model_.head_size);
  bytes.forward_work = std::max(bytes.mlp_work, IsEager(model_, plan_) ? eager : 0);
  return bytes;
}

double LayerRules::QkvBytes() const {
  const auto size = static_cast<double>(model_.head_size);
  const double queries = size * static_cast<double>(model_.heads);
  const double keys = size * static_cast<double>(model_.kv_heads);
  const bool eager = IsEager(model_, plan_);
  const double result = eager ? InputSize() : sizes_.compute;  // and input of the next matrix
  double bytes = sizes_.compute * (queries + 2 * (eager ? queries : keys)) + result * queries;
  if (!eager) bytes += 4 * static_cast<double>(model_.heads);  // logarithms of sums
  // Rotation makes new queries and keys beside what one matrix computed, and keeps their order of
  // dimensions, so that the result has to be copied.
  if (!eager && model_.rotary && !model_.separate_qkv)
    bytes += sizes_.compute * (2 * queries + keys);
  // An adapter casts the result to fp32, and autocast back.
  if (!eager && plan_.lora > 0) bytes += InputSize() * queries;
  if (model_.norms_qk) bytes += (queries + keys) * (4 + sizes_.compute);
  return bytes;
}

double LayerRules::ProbabilityBytes() const {
  if (!IsEager(model_, plan_)) return 0;
  const double softmax = SoftmaxIsFp32() ? 4 : 2;
  if (model_.attention_dropout) return Scores() * (softmax + 1 + sizes_.compute);
  return Scores() * (SoftmaxIsFp32() ? softmax + Cast() : softmax);
}

double LayerRules::MlpBytes() const {
  const double c = sizes_.compute;
  double bytes = InputSize();
  if (model_.activation == Activation::kOneKernel) bytes += c;
  if (model_.activation == Activation::kPythonGelu) bytes += is_mixed_ ? 3 * 4 + c : 4 * c;
  if (model_.gated) bytes += 2 * c;  // both factors of the product
  // A mask, and a copy of what the activation or the product keeps anyway.
  if (model_.inner_dropout) bytes += model_.activation == Activation::kRelu ? 1 + c : 1;
  return Inner() * bytes;
}

}  // namespace gmt::analysis
