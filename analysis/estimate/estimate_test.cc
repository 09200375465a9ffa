#include "analysis/estimate/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analysis/estimate/gpus.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kBillion = 1'000'000'000;

Model OfParameters(uint64_t parameters) {
  Model model;
  model.parameters = parameters;
  return model;
}

// 32 layers of 4,096, 6.74 billion parameters.
Model Llama() {
  const auto model = ModelOfConfig(R"({"model_type":"llama","hidden_size":4096,
      "intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,
      "max_position_embeddings":4096,"vocab_size":32000})");
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

// GPT-2's shape in modules of PyTorch, with a vocabulary that plays no role.
Model Gpt() { return *ModelOfShape({12, 768, 12, 50'000, 1024}); }

Estimate Of(const Model& model, const Plan& plan) {
  const absl::StatusOr<Estimate> estimate = EstimateOf(model, plan);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.value_or(Estimate{});
}

std::string ErrorOf(const Model& model, const Plan& plan) {
  return std::string(EstimateOf(model, plan).status().message());
}

const MomentEstimate& At(const Estimate& estimate, Moment moment) {
  for (const MomentEstimate& each : estimate.moments) {
    if (each.moment == moment) return each;
  }
  ADD_FAILURE() << "no moment " << NameOf(moment);
  return estimate.moments.front();
}

// Weights, gradients and optimizer state, per billion parameters.
uint64_t StateOf(const Plan& plan) {
  const Estimate estimate = Of(OfParameters(kBillion), plan);
  uint64_t bytes = 0;
  for (const Part part : {Part::kWeights, Part::kGradients, Part::kOptimizerState})
    bytes += estimate.Peak().BytesOf(part);
  return bytes;
}

void ExpectSums(const Estimate& estimate) {
  for (const MomentEstimate& moment : estimate.moments) {
    uint64_t bytes = 0, low = 0, high = 0;
    for (const PartEstimate& part : moment.parts) {
      EXPECT_LE(part.low, part.bytes) << NameOf(part.part);
      EXPECT_LE(part.bytes, part.high) << NameOf(part.part);
      EXPECT_TRUE(!part.exact || part.low == part.high) << NameOf(part.part);
      bytes += part.bytes;
      low += part.low;
      high += part.high;
    }
    EXPECT_EQ(moment.bytes, bytes);
    EXPECT_EQ(moment.low, low);
    EXPECT_EQ(moment.high, high);
    EXPECT_LE(moment.bytes, estimate.Peak().bytes);
  }
  EXPECT_LE(estimate.Low(), estimate.Peak().bytes);
  EXPECT_GE(estimate.High(), estimate.Peak().bytes);
}

TEST(EstimateTest, StatePerParameterDependsOnPrecisionAndOptimizer) {
  EXPECT_EQ(StateOf({.precision = Precision::kFp32}), 16 * kBillion);
  EXPECT_EQ(StateOf({.precision = Precision::kMixed}), 16 * kBillion);
  EXPECT_EQ(StateOf({.precision = Precision::kSixteen}), 8 * kBillion);
  EXPECT_EQ(StateOf({.precision = Precision::kSixteen, .master_weights = true}), 16 * kBillion);
  EXPECT_EQ(
      StateOf({.precision = Precision::kSixteen, .master_weights = true, .fp32_gradients = true}),
      18 * kBillion);
  EXPECT_EQ(StateOf({.optimizer = OptimizerKind::kSgdMomentum}), 12 * kBillion);
  EXPECT_EQ(StateOf({.optimizer = OptimizerKind::kLion}), 12 * kBillion);
  EXPECT_EQ(StateOf({.optimizer = OptimizerKind::kSgd}), 8 * kBillion);
  EXPECT_EQ(StateOf({.optimizer = OptimizerKind::kNone}), 8 * kBillion);
  // Two bytes, and a factor in fp32 for 256 of them.
  EXPECT_EQ(StateOf({.optimizer = OptimizerKind::kAdam8Bit}), (8 + 2) * kBillion + kBillion / 32);
}

TEST(EstimateTest, ZeroDividesWhatItsStageSays) {
  Plan plan{.precision = Precision::kSixteen, .master_weights = true, .gpus = 8};
  plan.zero = 1;
  EXPECT_EQ(StateOf(plan), 4 * kBillion + 12 * kBillion / 8);
  plan.zero = 2;
  EXPECT_EQ(StateOf(plan), 2 * kBillion + 14 * kBillion / 8);
  plan.zero = 3;
  EXPECT_EQ(StateOf(plan), 16 * kBillion / 8);
  // Megatron's distributed optimizer: gradients in fp32.
  plan.zero = 1;
  plan.fp32_gradients = true;
  EXPECT_EQ(StateOf(plan), 6 * kBillion + 12 * kBillion / 8);
}

// Both 28 and 112 GB are quoted for this.
TEST(EstimateTest, AdamOfSevenBillionInFp32Takes56GB) {
  const Estimate estimate = Of(OfParameters(7 * kBillion), {.precision = Precision::kFp32});
  EXPECT_EQ(estimate.Peak().BytesOf(Part::kOptimizerState), 56 * kBillion);
  EXPECT_EQ(StateOf({.precision = Precision::kFp32}) * 7, 112 * kBillion);
}

// That autocast halves gradients is quoted too.
TEST(EstimateTest, AutocastHalvesNeitherWeightsNorGradients) {
  const Estimate fp32 = Of(Gpt(), {.precision = Precision::kFp32});
  const Estimate mixed = Of(Gpt(), {.precision = Precision::kMixed});
  for (const Part part : {Part::kWeights, Part::kGradients, Part::kOptimizerState}) {
    EXPECT_EQ(At(mixed, Moment::kOptimizer).BytesOf(part),
              At(fp32, Moment::kOptimizer).BytesOf(part));
  }
}

// Per layer, token and unit of width: Korthikanti et al. count 34 + 5 a s / h, of which 2 masks of
// dropout in the MLP and behind attention; PyTorch's LayerNorm and GELU keep as much.
TEST(EstimateTest, SixteenBitGptKeepsWhatThePaperCounts) {
  const uint64_t token_width = 8 * 512 * 768;
  const auto per_layer = [&](Attention attention, bool dropout) {
    Model model = Gpt(), deeper = Gpt();
    model.dropout = deeper.dropout = model.attention_dropout = deeper.attention_dropout = dropout;
    ++deeper.stacks[0].layers;
    const Plan plan{
        .precision = Precision::kSixteen, .batch = 8, .length = 512, .attention = attention};
    return static_cast<double>(Of(deeper, plan).kept - Of(model, plan).kept) / token_width;
  };
  const double square = 12.0 * 512 / 768;  // a s / h
  EXPECT_DOUBLE_EQ(per_layer(Attention::kEager, true), 34 + 5 * square);
  EXPECT_DOUBLE_EQ(per_layer(Attention::kEager, false), 32 + 2 * square);
  EXPECT_NEAR(per_layer(Attention::kFlash, true), 34, 0.1);
}

// A saving of 50 %, of 50 to 70 %, and of 8 to 10 times is quoted: it depends on the model.
TEST(EstimateTest, CheckpointingKeepsTheInputOfEachLayer) {
  Model deeper = Gpt();
  ++deeper.stacks[0].layers;
  const Plan plan{.precision = Precision::kSixteen,
                  .batch = 8,
                  .length = 512,
                  .checkpointing = Checkpointing::kFull};
  EXPECT_EQ(Of(deeper, plan).kept - Of(Gpt(), plan).kept, 8u * 512 * 768 * 2);
  // But one layer is recomputed in the backward pass.
  Plan without = plan;
  without.checkpointing = Checkpointing::kNone;
  EXPECT_GT(At(Of(Gpt(), plan), Moment::kLastLayer).BytesOf(Part::kBackward),
            At(Of(Gpt(), without), Moment::kLastLayer).BytesOf(Part::kBackward));
  EXPECT_LT(Of(Gpt(), plan).Peak().bytes, Of(Gpt(), without).Peak().bytes);
}

TEST(EstimateTest, SelectiveCheckpointingKeepsNoProbabilities) {
  Plan plan{.batch = 8, .length = 1024, .attention = Attention::kEager};
  const uint64_t eager = Of(Gpt(), plan).kept;
  plan.checkpointing = Checkpointing::kSelective;
  const uint64_t selective = Of(Gpt(), plan).kept;
  EXPECT_EQ(eager - selective, uint64_t{12} * 8 * 12 * 1024 * 1024 * 6);
  // There are none in a fused kernel.
  plan.attention = Attention::kFlash;
  const uint64_t flash = Of(Gpt(), plan).kept;
  plan.checkpointing = Checkpointing::kNone;
  EXPECT_EQ(Of(Gpt(), plan).kept, flash);
}

// The cache of the allocator is no share of what is reserved, and memory outside of it counts too.
TEST(EstimateTest, TheContextIsOutsideTheAllocator) {
  const Estimate estimate = Of(OfParameters(kBillion), {});
  EXPECT_EQ(estimate.Peak().BytesOf(Part::kContext), kGiB / 2);
  EXPECT_GT(estimate.Peak().bytes, StateOf({}) + kGiB / 2);
}

TEST(EstimateTest, ThePeakMovesWithTheBatch) {
  EXPECT_EQ(Of(Gpt(), {.batch = 1, .length = 64}).Peak().moment, Moment::kOptimizer);
  EXPECT_EQ(Of(Gpt(), {.batch = 32}).Peak().moment, Moment::kLoss);
  Model no_logits = Gpt();
  no_logits.head_parameters = 0;
  EXPECT_EQ(Of(no_logits, {.batch = 32}).Peak().moment, Moment::kLastLayer);
  const Estimate bf16 = Of(
      Llama(), {.precision = Precision::kSixteen, .optimizer = OptimizerKind::kSgd, .length = 64});
  EXPECT_EQ(bf16.Peak().moment, Moment::kFirstLayer);
}

TEST(EstimateTest, PartsAddUpForEveryPlan) {
  for (const Model& model : {OfParameters(7 * kBillion), Gpt(), Llama()}) {
    for (const bool serve : {false, true}) {
      for (const Precision precision : {Precision::kFp32, Precision::kMixed, Precision::kSixteen}) {
        for (const Attention attention : {Attention::kEager, Attention::kFlash}) {
          Plan plan{.serve = serve, .precision = precision, .attention = attention};
          ExpectSums(Of(model, plan));
          if (serve) continue;
          for (plan.zero = 0; plan.zero <= 3; ++plan.zero) {
            plan.gpus = 3;
            plan.optimizer = plan.zero == 2 ? OptimizerKind::kAdafactor : OptimizerKind::kAdamW;
            ExpectSums(Of(model, plan));
          }
        }
      }
    }
  }
}

TEST(EstimateTest, AccumulatedGradientsAreThereInTheForwardPass) {
  Plan plan;
  EXPECT_EQ(At(Of(Gpt(), plan), Moment::kLoss).BytesOf(Part::kGradients), 0u);
  plan.accumulate = true;
  EXPECT_EQ(At(Of(Gpt(), plan), Moment::kLoss).BytesOf(Part::kGradients), Gpt().parameters * 4);
}

TEST(EstimateTest, LoraTrainsAdaptersInFp32) {
  const Estimate estimate = Of(Llama(), {.precision = Precision::kSixteen, .lora = 8});
  // Queries, keys, values and output; gate and up; down.
  const uint64_t adapters = uint64_t{8} * 32 * (4 * 8192 + 3 * (4096 + 11008));
  EXPECT_EQ(estimate.trained_parameters, adapters);
  const MomentEstimate& step = At(estimate, Moment::kOptimizer);
  EXPECT_EQ(step.BytesOf(Part::kWeights) + step.BytesOf(Part::kGradients) +
                step.BytesOf(Part::kOptimizerState),
            Llama().parameters * 2 + adapters * 16);
}

TEST(EstimateTest, Zero3GathersLayersWhileTheyAreComputed) {
  const Estimate estimate = Of(Llama(), {.precision = Precision::kSixteen, .gpus = 8, .zero = 3});
  const uint64_t layer = 4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096;
  EXPECT_EQ(At(estimate, Moment::kLoss).BytesOf(Part::kGathered), 2 * layer * 2);
  EXPECT_EQ(At(estimate, Moment::kOptimizer).BytesOf(Part::kGathered), 0u);
  // Without ZeRO, the buckets of DistributedDataParallel are a copy of the gradients.
  const Estimate copies = Of(Llama(), {.precision = Precision::kSixteen, .gpus = 8});
  EXPECT_EQ(copies.Peak().BytesOf(Part::kBuckets), Llama().parameters * 2);
}

TEST(EstimateTest, GroupedKeysInFp32FallBackToEagerAttention) {
  Model grouped = Llama();
  grouped.kv_heads = 8;
  const Plan plan{.precision = Precision::kFp32};
  EXPECT_TRUE(Of(grouped, plan).falls_back_to_eager);
  EXPECT_FALSE(Of(Llama(), plan).falls_back_to_eager);
  EXPECT_GT(Of(grouped, plan).kept, Of(Llama(), plan).kept);
  EXPECT_LT(Of(grouped, {}).kept, Of(Llama(), {}).kept);
}

TEST(EstimateTest, ServingFillsTheGpuWithTokens) {
  const Plan plan{.serve = true, .precision = Precision::kSixteen, .batch = 4, .length = 2048};
  const Estimate estimate = Of(Llama(), plan);
  const uint64_t per_token = 2 * 32 * 4096 * 2;
  EXPECT_EQ(estimate.Peak().BytesOf(Part::kKvCache), per_token * 4 * 2048);
  EXPECT_EQ(estimate.Peak().BytesOf(Part::kGradients), 0u);
  const Serving serving = ServingOf(Llama(), plan, 24 * kGiB);
  EXPECT_EQ(serving.bytes_per_token, per_token);
  EXPECT_GE(serving.tokens, 4u * 2048);
  Plan changed = plan;
  changed.batch = serving.largest_batch;
  EXPECT_LE(Of(Llama(), changed).Peak().bytes, 24 * kGiB);
  ++changed.batch;
  EXPECT_GT(Of(Llama(), changed).Peak().bytes, 24 * kGiB);
  // The model has no more positions.
  EXPECT_EQ(ServingOf(Llama(), plan, 200 * kGiB).longest, 4096u);
  EXPECT_EQ(ServingOf(Llama(), plan, 8 * kGiB).tokens, 0u);
  EXPECT_EQ(ServingOf(Llama(), plan, 8 * kGiB).largest_batch, 0u);
}

TEST(EstimateTest, AWindowLimitsTheCacheOfASequence) {
  Model model = Llama();
  model.window = 1024;
  const Plan plan{.serve = true, .precision = Precision::kSixteen, .length = 4096};
  const Estimate estimate = Of(model, plan);
  EXPECT_EQ(estimate.Peak().BytesOf(Part::kKvCache), uint64_t{2} * 32 * 4096 * 2 * 1024);
  EXPECT_FALSE(estimate.moments[0].parts[3].exact);  // not every program uses it
}

TEST(EstimateTest, FitIsJudgedByTheRange) {
  const Estimate estimate = Of(Gpt(), {});
  EXPECT_EQ(FitOf(estimate, estimate.High()), Fit::kYes);
  EXPECT_EQ(FitOf(estimate, estimate.High() - 1), Fit::kLikely);
  EXPECT_EQ(FitOf(estimate, estimate.Peak().bytes - 1), Fit::kUnlikely);
  EXPECT_EQ(FitOf(estimate, estimate.Low() - 1), Fit::kNo);
}

TEST(EstimateTest, FewestGpusAreTheFirstNumberThatSuffices) {
  const auto gpus = FewestGpus(Llama(), {.length = 2048}, 80 * kGiB);
  ASSERT_TRUE(gpus.has_value());
  ASSERT_GT(*gpus, 1u);
  Plan plan{.gpus = *gpus, .zero = 3, .length = 2048};
  EXPECT_LE(Of(Llama(), plan).Peak().bytes, 80 * kGiB);
  EXPECT_EQ(FewestGpus(Llama(), {}, kGiB), std::nullopt);
}

TEST(EstimateTest, ContradictionsAreRefusedInWords) {
  EXPECT_THAT(ErrorOf(Gpt(), {.zero = 2}), HasSubstr("give their number with --gpus"));
  EXPECT_THAT(ErrorOf(Gpt(), {.length = 1025}), HasSubstr("1024 positions"));
  EXPECT_THAT(ErrorOf(Gpt(), {.master_weights = true}), HasSubstr("need bf16 or fp16"));
  EXPECT_THAT(ErrorOf(Gpt(), {.serve = true, .lora = 4}), HasSubstr("--serve has no training"));
  EXPECT_THAT(ErrorOf(OfParameters(9), {.lora = 4}), HasSubstr("need the shape of the layers"));
  EXPECT_THAT(ErrorOf(Gpt(), {.batch = 0}), HasSubstr("must be 1 or more"));
  EXPECT_THAT(ErrorOf(Llama(), {.batch = 1 << 20, .length = 1 << 26}), HasSubstr("8 PiB"));
  Model encoder = Gpt();
  encoder.family = "bert";
  EXPECT_THAT(ErrorOf(encoder, {.serve = true}), HasSubstr("no KV cache"));
}

TEST(GpusTest, NamesAreFoundHoweverTheyAreWritten) {
  EXPECT_EQ(GpuNamed("h100")->name, "H100 80 GB");
  EXPECT_EQ(GpuNamed("NVIDIA A100-80GB")->name, "A100 80 GB");
  EXPECT_EQ(GpuNamed("a100")->name, "A100 40 GB");
  EXPECT_EQ(GpuNamed("rtx 4090")->name, GpuNamed("4090")->name);
  EXPECT_EQ(GpuNamed("80"), std::nullopt);
  EXPECT_EQ(GpuNamed(""), std::nullopt);
  EXPECT_EQ(GpuNamed("TPU"), std::nullopt);
}

TEST(GpusTest, TheListIsInAscendingOrderAndBelowTheNominalMemory) {
  uint64_t last = 0;
  for (const Gpu& gpu : KnownGpus()) {
    EXPECT_GE(gpu.bytes, last) << gpu.name;
    last = gpu.bytes;
    const std::string name(gpu.name);
    const size_t number = name.rfind(' ', name.size() - 4) + 1;
    EXPECT_LT(gpu.bytes, (std::stoull(name.substr(number)) + 1) * kGiB) << gpu.name;
  }
}

}  // namespace
}  // namespace gmt::analysis
