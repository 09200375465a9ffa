// analysis/estimate/model.h
//
// Model: what an estimate has to know about a neural network that has not been run: how many
// parameters it has, and which tensors its layers compute.
//
// The shapes come from the config.json of the transformers library. All parameters are counted from
// them, tied ones once; the published numbers of parameters are tests (model_test.cc).
//
//   family     model_type
//   decoders   llama mistral qwen2 qwen3 gemma phi3 | gpt2 gpt_neox opt
//   encoders   bert roberta
//   both       t5
//
// Thread safety: plain values and pure functions.

#ifndef GMT_ANALYSIS_ESTIMATE_MODEL_H_
#define GMT_ANALYSIS_ESTIMATE_MODEL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gmt::analysis {

// How a module computes decides what it keeps for the backward pass (estimate.cc).
enum class Norm : uint8_t {
  kLayer,      // torch.nn.LayerNorm: one kernel
  kRms,        // as transformers writes it: several operators in fp32, the last one in 16 bit
  kRmsInFp32,  // Gemma: all in fp32
};
enum class Activation : uint8_t {
  kRelu,        // its result is all that the backward pass needs
  kOneKernel,   // GELU, SiLU: keeps its input
  kPythonGelu,  // "gelu_new", written as operators: keeps four intermediate results
};

// Equal layers.
struct LayerStack {
  uint64_t layers = 0;
  uint64_t parameters = 0;         // in one layer
  uint64_t matrix_parameters = 0;  // the part of them that is in matrices of linear modules
  uint64_t matrix_sides = 0;       // inputs plus outputs of these matrices, added up
  uint64_t matrices = 0;
  uint64_t attentions = 1;  // 2 in a decoder that also reads an encoder's result
};

struct Model {
  std::string family;  // model_type; empty if only the number of parameters is known
  uint64_t parameters = 0;
  std::vector<LayerStack> stacks;  // an encoder and a decoder, or one of them; empty: unknown

  uint64_t hidden = 0, heads = 0, kv_heads = 0, head_size = 0, inner = 0;  // `inner`: of the MLP
  uint64_t vocabulary = 0;
  uint64_t embedding_parameters = 0;  // the largest table
  uint64_t head_parameters = 0;       // in the matrix that computes logits; 0: there is none
  uint64_t longest = 0;               // positions; 0: no limit is known
  uint64_t window = 0;                // positions that attention looks back; 0: all

  Norm norm = Norm::kLayer;
  Activation activation = Activation::kOneKernel;
  bool gated = false;              // the MLP multiplies two projections
  bool shared_norm_input = false;  // attention and MLP read the same tensor
  bool separate_qkv = false;       // three matrices read the input of attention, not one
  bool separate_gate = false;      // two matrices read the input of the MLP
  bool norms_qk = false;           // queries and keys are normalised
  bool softmax_in_fp32 = false;    // eager attention, in any precision
  bool rotary = false;
  bool dropout = false, attention_dropout = false, inner_dropout = false;
  bool casts_logits = false;    // casts them to fp32 before the loss, whatever the precision
  bool head_transform = false;  // BERT: a layer before the logits

  bool has_shape() const { return !stacks.empty(); }
  uint64_t Layers() const;
  // The number of parameters in matrices, which autocast casts: those of layers and of the head.
  uint64_t MatrixParameters() const;
};

// Reads the text of a config.json. Fails with INVALID_ARGUMENT if it is none, if a number is
// missing or absurd, or if the family is not one of those above; the message names it.
absl::StatusOr<Model> ModelOfConfig(std::string_view json);

// A decoder of torch.nn modules: LayerNorm, one matrix for queries, keys and values, GELU with four
// times the width, no dropout, `positions` learned positions, and a head of its own.
// Fails if `heads` does not divide `hidden`, or a number is 0 or absurd.
struct GptShape {
  uint64_t layers = 0, hidden = 0, heads = 0, vocabulary = 0, positions = 0;
};
absl::StatusOr<Model> ModelOfShape(const GptShape& shape);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_ESTIMATE_MODEL_H_
