#include "analysis/estimate/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/estimate/layer_bytes.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

// What PyTorch's allocator holds beyond its blocks, in percent of them: expected, and at most.
constexpr uint64_t kCachePercent = 3, kMaxCachePercent = 10;
// Doubles are exact up to here, so that parts add up.
constexpr double kMost = 9007199254740992;  // 2^53

// Bytes per logit, measured for each way to compute a loss.
struct LogitBytes {
  double forward = 0;  // held at the end of the forward pass
  double kept = 0;     // log-probabilities, for the backward pass
  double loss = 0;     // when the backward pass begins: with their gradient and that of the logits
};

LogitBytes LogitBytesOf(const Model& model, const Plan& plan) {
  if (plan.precision == Precision::kFp32) return {8, 4, 12};
  if (model.casts_logits) return {10, 4, 12};
  if (plan.precision == Precision::kMixed) return {8, 6, 10};  // autocast casts them in the loss
  return {4, 2, 6};
}

struct Spread {
  double bytes = 0, low = 0, high = 0;
  bool exact = false;
};
Spread Exactly(double bytes) { return {bytes, bytes, bytes, true}; }
// Between two factors of the estimate.
Spread About(double bytes, double low, double high) {
  return {bytes, bytes * low, bytes * high, false};
}

using Spreads = std::array<Spread, kParts>;
Spread& At(Spreads& spreads, Part part) { return spreads[static_cast<size_t>(part)]; }

// A context and its libraries take 0.3 to 0.9 GiB. PyTorch's cache: segments are rounded to 2 MiB,
// and what lies free between blocks depends on their order.
void AddOverhead(Spreads& spreads) {
  double blocks = 0;
  for (const Spread& range : spreads) blocks += range.bytes;
  At(spreads, Part::kContext) = {512.0 * kMiB, 300.0 * kMiB, 900.0 * kMiB, false};
  At(spreads, Part::kCache) = {blocks * kCachePercent / 100, 0, blocks * kMaxCachePercent / 100,
                               false};
}

absl::StatusOr<MomentEstimate> SumUp(Moment moment, Spreads spreads) {
  AddOverhead(spreads);
  MomentEstimate sum{moment, {}};
  for (size_t i = 0; i < kParts; ++i) {
    const Spread& range = spreads[i];
    if (range.high < 0.5) continue;
    if (range.high > kMost) return absl::OutOfRangeError("more than 8 PiB; no machine has that");
    const auto whole = [](double bytes) { return static_cast<uint64_t>(std::llround(bytes)); };
    const PartEstimate& part =
        sum.parts.emplace_back(PartEstimate{static_cast<Part>(i), whole(range.bytes),
                                            whole(range.low), whole(range.high), range.exact});
    sum.bytes += part.bytes;
    sum.low += part.low;
    sum.high += part.high;
  }
  return sum;
}

uint64_t KvBytesPerToken(const Model& model, const Plan& plan) {
  const LayerStack& decoder = model.stacks.back();
  return 2 * decoder.layers * decoder.attentions * model.kv_heads * model.head_size * plan.kv_bytes;
}

class Estimator {
 public:
  Estimator(const Model& model, const Plan& plan)
      : model_(model),
        plan_(plan),
        sizes_(SizesOf(plan)),
        rules_(model, plan),
        logits_(LogitBytesOf(model, plan)) {
    for (const LayerStack& stack : model.stacks) {
      trained_ += static_cast<double>(plan.lora * stack.layers * stack.matrix_sides);
      widest_ = std::max(widest_, static_cast<double>(stack.parameters));
    }
    if (plan.lora == 0) trained_ = static_cast<double>(model.parameters);
    widest_ = std::max(widest_, static_cast<double>(model.embedding_parameters));
    if (plan.lora > 0) sizes_.gradient = sizes_.state = 4, sizes_.master = 0;
  }

  double trained() const { return trained_; }

  // What the forward pass leaves for the backward pass.
  double Kept() const { return Activations().bytes + logits_.kept * Logits(); }

  std::vector<std::pair<Moment, Spreads>> Moments() const {
    if (plan_.serve) return {{Moment::kServing, Serving()}};
    if (!model_.has_shape()) return {{Moment::kOptimizer, OptimizerStep()}};
    return {{Moment::kForward, Forward()},
            {Moment::kLoss, Loss()},
            {Moment::kLastLayer, LastLayer()},
            {Moment::kFirstLayer, FirstLayer()},
            {Moment::kOptimizer, OptimizerStep()}};
  }

 private:
  double Tokens() const { return static_cast<double>(plan_.batch * plan_.length); }
  double Logits() const {
    return model_.head_parameters == 0 ? 0 : static_cast<double>(model_.vocabulary) * Tokens();
  }
  double ShareOf(int stage) const {
    return plan_.zero >= stage ? static_cast<double>(plan_.gpus) : 1;
  }
  bool IsRecomputed() const { return plan_.checkpointing == Checkpointing::kFull; }
  double GradientBytes() const { return std::ceil(trained_ * sizes_.gradient / ShareOf(2)); }

  // What is there at every moment.
  Spreads Constant() const {
    Spreads spreads;
    double weights = static_cast<double>(model_.parameters) * sizes_.weight;
    if (plan_.lora > 0) weights += trained_ * 4;
    At(spreads, Part::kWeights) = Exactly(std::ceil(weights / ShareOf(3)));
    if (plan_.serve) return spreads;
    const double state = trained_ * sizes_.master + StateBytes();
    const double divided = std::ceil(state / ShareOf(1));
    At(spreads, Part::kOptimizerState) =
        plan_.optimizer == OptimizerKind::kAdafactor ? About(divided, 0.9, 1.5) : Exactly(divided);
    if (plan_.gpus > 1) At(spreads, Part::kBuckets) = Buckets();
    return spreads;
  }

  double StateBytes() const {
    switch (plan_.optimizer) {
      case OptimizerKind::kNone:
      case OptimizerKind::kSgd:
        return 0;
      case OptimizerKind::kSgdMomentum:
      case OptimizerKind::kLion:
        return trained_ * sizes_.state;
      case OptimizerKind::kAdamW:
        return trained_ * 2 * sizes_.state;
      case OptimizerKind::kAdam8Bit:
        // Blocks of 256 numbers have a factor in fp32 (Dettmers et al., 8-bit Optimizers).
        return std::ceil(trained_ * 2 * (1 + 4.0 / 256));
      case OptimizerKind::kAdafactor: {
        // Rows and columns instead of matrices (Shazeer and Stern, Adafactor).
        double sides = 0;
        for (const LayerStack& stack : model_.stacks)
          sides += static_cast<double>(stack.layers * stack.matrix_sides);
        return sides * (plan_.lora > 0 ? 1 : sizes_.state);
      }
    }
    return 0;
  }

  // DistributedDataParallel has buckets of all gradients, unless gradient_as_bucket_view; DeepSpeed
  // buckets of 5e8 numbers by default.
  Spread Buckets() const {
    if (plan_.zero == 3) return {};
    const double numbers = plan_.zero == 0 ? trained_ : std::min(trained_, 5e8);
    return About(numbers * sizes_.gradient, 0, plan_.zero == 0 ? 1 : 2);
  }

  // What is there while a layer is computed.
  Spreads Computing() const {
    Spreads spreads = Constant();
    if (plan_.zero == 3) {
      const double layer = widest_ * sizes_.compute;
      At(spreads, Part::kGathered) = {2 * layer, layer, 3 * layer, false};
    }
    return spreads;
  }

  // 16-bit copies of weights, which matrix products keep.
  double CastBytes(uint64_t parameters) const {
    return plan_.precision == Precision::kMixed && plan_.zero < 3
               ? 2 * static_cast<double>(parameters)
               : 0;
  }

  LayerBytes LayerOf(const LayerStack& stack) const { return rules_.Bytes(stack.attentions); }

  double KeptBy(const LayerStack& stack) const {
    const LayerBytes layer = LayerOf(stack);
    switch (plan_.checkpointing) {
      case Checkpointing::kFull:
        return sizes_.residual * static_cast<double>(model_.hidden);
      case Checkpointing::kSelective:
        return layer.Kept() - layer.probabilities;
      case Checkpointing::kNone:
        break;
    }
    return layer.Kept();
  }

  // Before and behind the layers: a mask of dropout, the last norm, the input of the head.
  double OutsideBytes() const {
    const auto h = static_cast<double>(model_.hidden);
    const double masks = (model_.dropout ? 1 : 0) + (model_.inner_dropout ? 1 : 0);
    double bytes = (rules_.NormBytes() + masks * h) * static_cast<double>(model_.stacks.size());
    if (model_.head_parameters > 0) bytes += sizes_.compute * h;
    if (model_.head_transform) bytes += rules_.NormBytes() + 2 * sizes_.compute * h;
    return bytes;
  }

  Spread Activations() const {
    double per_token = OutsideBytes();
    for (const LayerStack& stack : model_.stacks)
      per_token += static_cast<double>(stack.layers) * KeptBy(stack);
    const uint64_t casts = IsRecomputed() ? model_.head_parameters : model_.MatrixParameters();
    return About(per_token * Tokens() + CastBytes(casts), 0.9, 1.1);
  }

  Spreads Forward() const {
    Spreads spreads = Computing();
    At(spreads, Part::kActivations) = Activations();
    // Autocast's cache holds all casts until the forward pass ends.
    if (IsRecomputed()) {
      const double casts = CastBytes(model_.MatrixParameters() - model_.head_parameters);
      Spread& activations = At(spreads, Part::kActivations);
      activations = About(activations.bytes + casts, 0.9, 1.1);
    }
    if (plan_.accumulate) At(spreads, Part::kGradients) = Exactly(GradientBytes());
    At(spreads, Part::kLogits) = About(Logits() * logits_.forward, 0.9, 1.1);
    return spreads;
  }

  Spreads Loss() const {
    Spreads spreads = Computing();
    At(spreads, Part::kActivations) = Activations();
    if (plan_.accumulate) At(spreads, Part::kGradients) = Exactly(GradientBytes());
    // The program may keep the logits themselves.
    At(spreads, Part::kLogits) = {logits_.loss * Logits(), logits_.loss * Logits(),
                                  (logits_.loss + sizes_.compute) * Logits(), false};
    return spreads;
  }

  double LayerWork() const {
    double most = 0;
    for (const LayerStack& stack : model_.stacks) {
      const LayerBytes layer = LayerOf(stack);
      double work = layer.Work();
      if (IsRecomputed()) work += layer.Kept();
      if (plan_.checkpointing == Checkpointing::kSelective)
        work = std::max(layer.mlp_work, layer.attention_work + layer.probabilities - layer.mlp);
      most = std::max(most, work);
    }
    return most * Tokens();
  }

  Spreads LastLayer() const {
    Spreads spreads = Computing();
    At(spreads, Part::kActivations) = Activations();
    double gradients = plan_.accumulate ? GradientBytes() : 0;
    if (!plan_.accumulate && plan_.lora == 0)
      gradients = static_cast<double>(model_.head_parameters) * sizes_.gradient / ShareOf(2);
    At(spreads, Part::kGradients) = Exactly(std::ceil(gradients));
    At(spreads, Part::kBackward) = About(LayerWork(), 0.8, 1.2);
    return spreads;
  }

  Spreads FirstLayer() const {
    Spreads spreads = Computing();
    const double kept = KeptBy(model_.stacks.front()) * Tokens();
    At(spreads, Part::kActivations) = About(kept, 0.9, 1.1);
    At(spreads, Part::kGradients) = Exactly(GradientBytes());
    At(spreads, Part::kBackward) = About(LayerWork(), 0.8, 1.2);
    return spreads;
  }

  Spreads OptimizerStep() const {
    Spreads spreads = Constant();
    At(spreads, Part::kGradients) = Exactly(GradientBytes());
    // Adam's foreach kernels compute all square roots at once; fused ones compute none.
    if (plan_.optimizer == OptimizerKind::kAdamW)
      At(spreads, Part::kOptimizerStep) = About(trained_ * sizes_.state / ShareOf(1), 0, 1);
    return spreads;
  }

  Spreads Serving() const {
    Spreads spreads = Constant();
    if (!model_.has_shape()) return spreads;
    const double per_token = static_cast<double>(KvBytesPerToken(model_, plan_));
    const uint64_t length =
        model_.window > 0 ? std::min(model_.window, plan_.length) : plan_.length;
    const auto batch = static_cast<double>(plan_.batch);
    const double cached = per_token * batch * static_cast<double>(length);
    At(spreads, Part::kKvCache) = {cached, cached, per_token * Tokens(), false};
    At(spreads, Part::kKvCache).exact = length == plan_.length;
    // One layer at a time, beside the embeddings, its input and what its norm returned. A server
    // may read prompts one after the other.
    const LayerBytes layer = rules_.Bytes(1);
    const double width = 3 * sizes_.compute * static_cast<double>(model_.hidden);
    const double work = (layer.forward_work + width) * Tokens();
    At(spreads, Part::kActivations) = {work, work / batch, work * 1.1, false};
    At(spreads, Part::kLogits) =
        Exactly(batch * static_cast<double>(model_.vocabulary) * (sizes_.compute + 4));
    return spreads;
  }

  const Model& model_;
  const Plan& plan_;
  NumberSizes sizes_;
  const LayerRules rules_;
  const LogitBytes logits_;
  double trained_ = 0;
  double widest_ = 0;  // parameters of the largest layer
};

absl::Status Check(const Model& model, const Plan& plan) {
  const auto wrong = [](absl::string_view what) { return absl::InvalidArgumentError(what); };
  if (plan.gpus == 0 || plan.batch == 0 || plan.length == 0)
    return wrong("the numbers of GPUs, sequences and tokens must be 1 or more");
  if (plan.zero > 0 && plan.gpus == 1)
    return wrong("ZeRO divides among GPUs: give their number with --gpus");
  if (plan.precision != Precision::kSixteen && (plan.master_weights || plan.fp32_gradients))
    return wrong(
        "weights are in fp32 already: --master-weights and --fp32-gradients need bf16 or "
        "fp16");
  if (plan.serve && (plan.zero > 0 || plan.lora > 0 || plan.accumulate ||
                     plan.checkpointing != Checkpointing::kNone))
    return wrong(
        "--serve has no training: leave out --zero, --lora, --accumulate and "
        "--checkpointing");
  if (plan.serve && (model.family == "bert" || model.family == "roberta"))
    return wrong(absl::StrCat(model.family, " generates no text, so it has no KV cache"));
  if (!model.has_shape() && (plan.lora > 0 || plan.checkpointing != Checkpointing::kNone))
    return wrong(
        "--lora and --checkpointing need the shape of the layers: give --config, or "
        "--layers, --hidden, --heads and --vocabulary");
  if (model.longest > 0 && !model.rotary && plan.length > model.longest)
    return wrong(absl::StrCat("the model has ", model.longest, " positions, fewer than --seq ",
                              plan.length));
  return absl::OkStatus();
}

}  // namespace

std::string_view NameOf(Part part) {
  constexpr std::array<std::string_view, kParts> kNames = {
      "weights",        "gradients",       "optimizer_state",  "activations", "logits",  "backward",
      "optimizer_step", "gathered_layers", "gradient_buckets", "kv_cache",    "context", "cache"};
  return kNames[static_cast<size_t>(part)];
}

std::string_view NameOf(Moment moment) {
  constexpr std::array<std::string_view, 6> kNames = {
      "forward",   "loss",   "backward_of_last_layer", "backward_of_first_layer",
      "optimizer", "serving"};
  return kNames[static_cast<size_t>(moment)];
}

uint64_t MomentEstimate::BytesOf(Part part) const {
  for (const PartEstimate& estimate : parts) {
    if (estimate.part == part) return estimate.bytes;
  }
  return 0;
}

const MomentEstimate& Estimate::Peak() const {
  return *std::max_element(
      moments.begin(), moments.end(),
      [](const MomentEstimate& a, const MomentEstimate& b) { return a.bytes < b.bytes; });
}

uint64_t Estimate::Low() const {
  uint64_t low = 0;
  for (const MomentEstimate& moment : moments) low = std::max(low, moment.low);
  return low;
}

uint64_t Estimate::High() const {
  uint64_t high = 0;
  for (const MomentEstimate& moment : moments) high = std::max(high, moment.high);
  return high;
}

absl::StatusOr<Estimate> EstimateOf(const Model& model, const Plan& plan) {
  if (absl::Status status = Check(model, plan); !status.ok()) return status;
  const Estimator estimator(model, plan);
  Estimate estimate;
  estimate.trained_parameters = static_cast<uint64_t>(estimator.trained());
  if (model.has_shape() && !plan.serve)
    estimate.kept = static_cast<uint64_t>(std::llround(estimator.Kept()));
  estimate.without_activations = !model.has_shape();
  estimate.falls_back_to_eager =
      model.has_shape() && plan.attention != Attention::kEager && IsEager(model, plan);
  for (const auto& [moment, spreads] : estimator.Moments()) {
    absl::StatusOr<MomentEstimate> sum = SumUp(moment, spreads);
    if (!sum.ok()) return sum.status();
    estimate.moments.push_back(*std::move(sum));
  }
  return estimate;
}

Fit FitOf(const Estimate& estimate, uint64_t gpu_bytes) {
  if (estimate.Low() > gpu_bytes) return Fit::kNo;
  if (estimate.Peak().bytes > gpu_bytes) return Fit::kUnlikely;
  return estimate.High() > gpu_bytes ? Fit::kLikely : Fit::kYes;
}

std::optional<uint64_t> FewestGpus(const Model& model, Plan plan, uint64_t gpu_bytes) {
  for (plan.gpus = 1; plan.gpus <= 4096; ++plan.gpus) {
    plan.zero = plan.gpus > 1 ? 3 : 0;
    const absl::StatusOr<Estimate> estimate = EstimateOf(model, plan);
    if (estimate.ok() && estimate->Peak().bytes <= gpu_bytes) return plan.gpus;
  }
  return std::nullopt;
}

Serving ServingOf(const Model& model, const Plan& plan, uint64_t gpu_bytes) {
  Serving serving;
  serving.bytes_per_token = KvBytesPerToken(model, plan);
  const auto fits = [&](uint64_t batch, uint64_t length) {
    Plan changed = plan;
    changed.batch = batch;
    changed.length = length;
    const absl::StatusOr<Estimate> estimate = EstimateOf(model, changed);
    return estimate.ok() && estimate->Peak().bytes <= gpu_bytes;
  };
  // The largest number for which `holds`, which does so up to some number.
  const auto largest = [](uint64_t most, const auto& holds) {
    uint64_t low = 0, high = most + 1;
    while (high - low > 1) {
      const uint64_t middle = low + (high - low) / 2;
      (holds(middle) ? low : high) = middle;
    }
    return low;
  };
  constexpr uint64_t kMaxBatch = 1 << 20, kMaxLength = 1 << 26;
  serving.largest_batch = largest(kMaxBatch, [&](uint64_t n) { return fits(n, plan.length); });
  const uint64_t limit = model.longest > 0 ? model.longest : kMaxLength;
  serving.longest = largest(limit, [&](uint64_t n) { return fits(plan.batch, n); });
  const absl::StatusOr<Estimate> estimate = EstimateOf(model, plan);
  if (!estimate.ok()) return serving;
  // The cache's own share of what PyTorch's allocator adds.
  const uint64_t kv = estimate->Peak().BytesOf(Part::kKvCache);
  const uint64_t others = estimate->Peak().bytes - kv - kv * kCachePercent / 100;
  if (others < gpu_bytes)
    serving.tokens = (gpu_bytes - others) * 100 / (100 + kCachePercent) / serving.bytes_per_token;
  return serving;
}

}  // namespace gmt::analysis
