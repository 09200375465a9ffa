// analysis/estimate/estimate.h
//
// How much memory of one GPU a model will need that has not been run. Parts add up to the total.
//
// Per parameter (P), with `--precision`:
//
//   precision                 weights  gradients  AdamW   together
//   fp32, mixed                  4         4        8       16   autocast changes none of them
//   bf16, fp16                   2         2        4        8   PyTorch keeps state like weights
//   bf16 with master weights     2         2      4 + 8     16   Megatron, DeepSpeed
//   ... and gradients in fp32    2         4      4 + 8     18
//
//   ZeRO divides among N GPUs: 1 the optimizer's state, 2 gradients too, 3 weights too (FSDP).
//   Stage 3 gathers a layer while it is computed, and the next one. Source: Rajbhandari et al.,
//   ZeRO. With LoRA, weights are frozen, and adapters, in fp32, take 16 bytes per parameter.
//
// Activations are the tensors that each module keeps for the backward pass, as PyTorch's operators
// do: layer_bytes.cc lists them for each kind of module. For 16 bit, dropout and kernels that
// convert nothing, they are s b h (34 + 5 a s / h) bytes per layer (Korthikanti et al., Reducing
// Activation Recomputation); autocast, norms in fp32 and separate projections add to that.
//
// The peak moves. These moments are computed, and the largest is the answer:
//
//   forward     end of the forward pass: activations, logits and their copy in fp32
//   loss        beginning of the backward pass: activations; log-probabilities and two gradients of
//               logits: 12 bytes per logit, less if a 16-bit model does not cast them to fp32
//   backward    of the last layer, with the gradient of the head; and of the first layer, with all
//               gradients. What one layer's backward pass computes comes on top; with
//               checkpointing, all of its activations as well
//   optimizer   weights, gradients, state, and the square roots that a foreach optimizer computes
//
// Weights, gradients and state are exact. Everything else has a range: low and high.
//
// Thread safety: plain values and pure functions.

#ifndef GMT_ANALYSIS_ESTIMATE_ESTIMATE_H_
#define GMT_ANALYSIS_ESTIMATE_ESTIMATE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/estimate/model.h"

namespace gmt::analysis {

enum class Precision : uint8_t {
  kFp32,
  kMixed,   // weights in fp32, autocast to 16 bit
  kSixteen  // bf16 or fp16
};
enum class OptimizerKind : uint8_t {
  kNone,
  kSgd,
  kSgdMomentum,
  kAdamW,
  kAdam8Bit,
  kAdafactor,
  kLion,
};
enum class Checkpointing : uint8_t {
  kNone,
  kSelective,  // recomputes the attention, not the matrices
  kFull,       // keeps only the input of each layer
};
enum class Attention : uint8_t {
  kEager,  // keeps its probabilities: length x length for each head
  kFlash,  // or another fused kernel of scaled_dot_product_attention
};

struct Plan {
  bool serve = false;  // no gradients, no optimizer, but a KV cache
  Precision precision = Precision::kMixed;
  bool master_weights = false;  // 16-bit weights with a copy and state in fp32
  bool fp32_gradients = false;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  uint64_t gpus = 1;
  int zero = 0;       // stage, 0 to 3
  uint64_t lora = 0;  // rank of adapters of all matrices in layers; 0: all parameters are trained
  uint64_t batch = 1, length = 1024;  // on one GPU; `length` is in tokens
  bool accumulate = false;            // gradients are kept from one forward pass to the next
  Checkpointing checkpointing = Checkpointing::kNone;
  Attention attention = Attention::kFlash;
  uint64_t kv_bytes = 2;  // for one number in the KV cache
};

enum class Part : uint8_t {
  kWeights,
  kGradients,
  kOptimizerState,  // and master weights
  kActivations,     // kept for the backward pass, with the 16-bit copies of weights
  kLogits,          // and the loss
  kBackward,        // what the backward pass of one layer computes
  kOptimizerStep,   // intermediate results of the optimizer's step
  kGathered,        // layers that ZeRO 3 has gathered
  kBuckets,         // gradients in the buckets of DistributedDataParallel or ZeRO
  kKvCache,
  kContext,  // the CUDA context and libraries
  kCache,    // segments of PyTorch's allocator beyond its blocks
};
inline constexpr size_t kParts = 12;
// As in JSON: "optimizer_state".
std::string_view NameOf(Part part);

enum class Moment : uint8_t { kForward, kLoss, kLastLayer, kFirstLayer, kOptimizer, kServing };
std::string_view NameOf(Moment moment);  // as in JSON

struct PartEstimate {
  Part part = Part::kWeights;
  uint64_t bytes = 0, low = 0, high = 0;  // low <= bytes <= high
  bool exact = false;                     // the three are equal, because it is arithmetic
};

struct Serving {
  uint64_t bytes_per_token = 0;  // what one sequence adds to the KV cache
  // With the memory of `Fit::bytes`.
  uint64_t tokens = 0;         // the number that the cache can hold
  uint64_t largest_batch = 0;  // for sequences as long as in the plan
  uint64_t longest = 0;        // length for the batch of the plan
};

struct MomentEstimate {
  Moment moment = Moment::kOptimizer;
  std::vector<PartEstimate> parts;        // those that are not 0, in the order of Part
  uint64_t bytes = 0, low = 0, high = 0;  // sums of the parts
  uint64_t BytesOf(Part part) const;
};

struct Estimate {
  std::vector<MomentEstimate> moments;  // sorted as in a step
  uint64_t trained_parameters = 0;
  // What the forward pass leaves for the backward pass: activations and log-probabilities.
  uint64_t kept = 0;
  // The model has no shape: activations and logits are missing, and sums are lower limits.
  bool without_activations = false;
  // Fused attention was planned, but no kernel exists for fp32 with grouped keys.
  bool falls_back_to_eager = false;

  // The moment with most bytes. REQUIRES: made by EstimateOf().
  const MomentEstimate& Peak() const;
  // The range of what is needed: the largest low and high sum of any moment. If the parts of one
  // turn out smaller, another one is the peak.
  uint64_t Low() const;
  uint64_t High() const;
};

// Fails with INVALID_ARGUMENT if the plan contradicts itself or the model, and with OUT_OF_RANGE if
// the result exceeds 2^53 bytes.
absl::StatusOr<Estimate> EstimateOf(const Model& model, const Plan& plan);

// Whether it fits into a GPU.
enum class Fit : uint8_t {
  kYes,       // even the high estimate
  kLikely,    // the estimate, but not the high one
  kUnlikely,  // only the low one
  kNo,
};
Fit FitOf(const Estimate& estimate, uint64_t gpu_bytes);

// The fewest GPUs of that size, with ZeRO 3 and the plan's batch on each, that are likely to
// suffice; nullopt if 4,096 do not.
std::optional<uint64_t> FewestGpus(const Model& model, Plan plan, uint64_t gpu_bytes);

// REQUIRES: plan.serve, and a model with a shape.
Serving ServingOf(const Model& model, const Plan& plan, uint64_t gpu_bytes);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_ESTIMATE_ESTIMATE_H_
