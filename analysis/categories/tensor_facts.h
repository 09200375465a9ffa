// analysis/categories/tensor_facts.h
//
// TensorFacts: what the types and shapes of the tensors on a device show at one moment: how much
// memory each sample and each token takes, what grows with the square of the sequence, which
// parameters exist twice (in half precision and as fp32 master weights), and which activations stay
// float32 beside half precision.
//
//   inputs       [8, 128] int64                         8 samples of 128 tokens
//   activations  [8, 128, 768], [1024, 50257]           of the batch: bytes / 8, bytes / (8 * 128)
//                [8, 12, 128, 128], [96, 128, 128]      of the batch, square in the sequence
//                [768, 3072] (a cast weight)            not of the batch
//
// A number in a shape may mean something else of the same size. So the batch is known only if its
// size explains nearly all of the pass (90 %), and the sequence only if its length does: not for
// packed sequences (ids of one dimension), images of varying sizes, or routed tokens. `certain` is
// false if parameters contain the sequence length among their dimensions (a hidden size of 128 with
// 128 tokens). Inputs are [samples, tokens]: the two are exchanged if a model takes the tokens
// first.
//
// Source of the types and shapes: recordings with roles (docs/pytorch.md); others have none.
// Thread safety: pure functions. Cost: one walk over what is held.

#ifndef GMT_ANALYSIS_CATEGORIES_TENSOR_FACTS_H_
#define GMT_ANALYSIS_CATEGORIES_TENSOR_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/stacks/frames.h"

namespace gmt::analysis {

// Parses "[8, 128]". Only the first five dimensions are known: "[2, 3, 4, 5, 6, ...]".
std::vector<uint64_t> ParseShape(std::string_view text);

// What a dimension of a tensor counts.
enum class Dimension : uint8_t {
  kOther,              // features, heads, classes
  kSamples,            // 8
  kTokens,             // 128
  kBoth,               // 1024: samples and tokens merged
  kMultipleOfSamples,  // 96: samples merged with something else, such as heads
  kMultipleOfBoth,     // 2048: samples, tokens and something else
};
// Returns what each dimension of a tensor counts, in a pass over `samples` inputs of `tokens` each
// (0: no sequence). `slack`: a dimension that differs from `tokens` by this much counts tokens too;
// language models compare all tokens but the first.
std::vector<Dimension> DimensionsOf(const std::vector<uint64_t>& sizes, uint64_t samples,
                                    uint64_t tokens, uint64_t slack = 0);
// Returns the slack for sequences of that length: 0 if they are so short that another dimension
// often has nearly the same size.
uint64_t SlackFor(uint64_t tokens);

// Tensors with the same stack, type and shape.
struct ShapedMemory {
  uint32_t stack = 0, forward_stack = 0;
  std::string dtype, shape;  // "bfloat16", "[8, 12, 128, 128]"
  std::string node;  // the class of the autograd node that saved it last; "" if none or unknown
  // The program's own line, "model.py:31"; that of the forward pass if known.
  std::string place;
  uint64_t bytes = 0, count = 0;
};

struct BatchFacts {
  std::string input_dtype, input_shape;
  uint64_t samples = 0;
  uint64_t tokens = 0;       // per sample, as the model receives them; 0 if inputs have no sequence
  uint64_t batch_bytes = 0;  // activations and temporaries whose shapes contain the batch
  uint64_t bytes_per_sample() const { return batch_bytes / samples; }
  uint64_t bytes_per_token() const { return tokens == 0 ? 0 : bytes_per_sample() / tokens; }
  // The part of batch_bytes whose shapes contain the sequence length twice.
  uint64_t square_bytes = 0;
  bool certain = true;
  std::vector<ShapedMemory> square;  // most bytes first
};

// Parameters in half precision, and float32 tensors of the same shapes other than Adam's two
// states.
struct MasterWeights {
  std::string dtype;  // the parameters' type
  uint64_t parameter_bytes = 0, master_bytes = 0;
};

// Activations in both precisions: autocast, or a model that casts.
struct MixedActivations {
  std::string half_dtype;
  uint64_t half_bytes = 0, float_bytes = 0;
  std::vector<ShapedMemory> largest;  // in float32, most bytes first
};

struct TensorFacts {
  int32_t device = 0;
  std::optional<BatchFacts> batch;
  std::optional<MasterWeights> master;
  std::optional<MixedActivations> mixed;
};

// The tensors on `device` after `step`; nullopt if none has a type and a shape.
std::optional<TensorFacts> FindTensorFacts(const Examination& examination,
                                           const Categories& categories, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_TENSOR_FACTS_H_
