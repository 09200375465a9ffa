#include "answers/estimate/estimate_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "analysis/estimate/gpus.h"
#include "analysis/text.h"
#include "answers/json.h"

namespace gmt::answers {
namespace {

using analysis::Checkpointing;
using analysis::Fit;
using analysis::Moment;
using analysis::MomentEstimate;
using analysis::OptimizerKind;
using analysis::Part;
using analysis::PartEstimate;
using analysis::PartGroup;
using analysis::Plan;
using analysis::Precision;

constexpr size_t kLargestAlternatives = 5;

std::string PartText(Part part) {
  switch (part) {
    case Part::kBackward:
      return "one layer's backward pass";
    case Part::kOptimizerStep:
      return "temporaries of the optimizer";
    case Part::kLogits:
      return "logits and loss";
    case Part::kKvCache:
      return "KV cache";
    case Part::kContext:
      return "CUDA context and libraries";
    case Part::kCache:
      return "cache of the allocator";
    default:
      break;
  }
  std::string text(NameOf(part));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string MomentText(Moment moment) {
  switch (moment) {
    case Moment::kForward:
      return "end of the forward pass";
    case Moment::kLoss:
      return "gradient of the loss";
    case Moment::kLastLayer:
      return "backward pass, last layer";
    case Moment::kFirstLayer:
      return "backward pass, first layer";
    case Moment::kOptimizer:
      return "step of the optimizer";
    case Moment::kServing:
      return "reading the prompts";
  }
  return "";
}

std::string GroupText(PartGroup group) {
  switch (group) {
    case PartGroup::kComputation:
      return "activations, temporaries";
    case PartGroup::kKvCache:
      return "KV cache";
    case PartGroup::kOther:
      return "inputs and others";
    default:
      break;
  }
  std::string text(NameOf(group));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string_view NameOf(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kMixed:
      return "mixed";
    case Precision::kSixteen:
      return "16-bit";
  }
  return "";
}

std::string_view NameOf(OptimizerKind optimizer) {
  switch (optimizer) {
    case OptimizerKind::kNone:
      return "none";
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kSgdMomentum:
      return "sgd-momentum";
    case OptimizerKind::kAdamW:
      return "adamw";
    case OptimizerKind::kAdam8Bit:
      return "adam8bit";
    case OptimizerKind::kAdafactor:
      return "adafactor";
    case OptimizerKind::kLion:
      return "lion";
  }
  return "";
}

std::string_view NameOf(Checkpointing checkpointing) {
  switch (checkpointing) {
    case Checkpointing::kNone:
      return "none";
    case Checkpointing::kSelective:
      return "selective";
    case Checkpointing::kFull:
      return "full";
  }
  return "";
}

std::string_view NameOf(analysis::Attention attention) {
  return attention == analysis::Attention::kEager ? "eager" : "flash";
}

std::string_view NameOf(Fit fit) {
  switch (fit) {
    case Fit::kYes:
      return "yes";
    case Fit::kLikely:
      return "likely";
    case Fit::kUnlikely:
      return "unlikely";
    case Fit::kNo:
      return "no";
  }
  return "";
}

// "6.74 billion parameters", "124 million parameters".
std::string ParametersText(uint64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e9) return fmt::format("{:.3g} billion parameters", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.3g} million parameters", number / 1e6);
  return Count(count) + " parameters";
}

// "5.69 to 6.95 GiB", "300 MiB to 1.2 GiB".
std::string Between(uint64_t low, uint64_t high) {
  std::string from = Bytes(low);
  const std::string to = Bytes(high);
  const size_t unit = from.find(' ');
  if (to.ends_with(from.substr(unit))) from.resize(unit);
  return from + " to " + to;
}

nlohmann::ordered_json PartsJson(const MomentEstimate& moment) {
  auto parts = nlohmann::ordered_json::array();
  for (const PartEstimate& part : moment.parts) {
    parts.push_back({{"name", NameOf(part.part)},
                     {"bytes", part.bytes},
                     {"low_bytes", part.low},
                     {"high_bytes", part.high},
                     {"exact", part.exact}});
  }
  return parts;
}

// Plans that need less, with the options that change `plan` to them.
std::vector<std::pair<std::string, Plan>> Changes(const analysis::Model& model, const Plan& plan) {
  std::vector<std::pair<std::string, Plan>> changes;
  const auto add = [&](std::string options, const auto& change) {
    Plan changed = plan;
    change(changed);
    changes.emplace_back(std::move(options), changed);
  };
  if (plan.precision != Precision::kSixteen)
    add("--precision bf16", [](Plan& p) { p.precision = Precision::kSixteen; });
  if (plan.batch > 1) add(fmt::format("--batch {}", plan.batch / 2), [](Plan& p) { p.batch /= 2; });
  if (plan.attention == analysis::Attention::kEager)
    add("--attention flash", [](Plan& p) { p.attention = analysis::Attention::kFlash; });
  if (plan.serve) {
    if (plan.kv_bytes > 1) add("--kv-precision fp8", [](Plan& p) { p.kv_bytes = 1; });
    return changes;
  }
  if (plan.optimizer == OptimizerKind::kAdamW)
    add("--optimizer adam8bit", [](Plan& p) { p.optimizer = OptimizerKind::kAdam8Bit; });
  if (plan.checkpointing != Checkpointing::kFull && model.has_shape())
    add("--checkpointing full", [](Plan& p) { p.checkpointing = Checkpointing::kFull; });
  if (plan.lora == 0 && model.has_shape()) add("--lora 16", [](Plan& p) { p.lora = 16; });
  if (plan.zero < 3) {
    const uint64_t gpus = plan.gpus > 1 ? plan.gpus : 8;
    add(fmt::format("--zero 3 --gpus {}", gpus), [&](Plan& p) { p.zero = 3, p.gpus = gpus; });
  }
  return changes;
}

}  // namespace

absl::StatusOr<EstimateAnswer> EstimateAnswer::Make(EstimateOptions options,
                                                    const Recording* recording) {
  EstimateAnswer answer;
  answer.plan_ = options.plan;
  answer.file_ = recording != nullptr ? recording->path() : options.file;
  answer.gpu_name_ = options.gpu_name;
  answer.gpu_bytes_ = options.gpu_bytes;
  if (recording != nullptr) {
    answer.recorded_ = RecordedFacts(recording->examination(), recording->categories());
    const analysis::Recorded& recorded = *answer.recorded_;
    if (!options.has_batch && recorded.batch > 0) answer.plan_.batch = recorded.batch;
    if (!options.has_length && recorded.length > 0) answer.plan_.length = recorded.length;
    if (answer.gpu_bytes_ == 0 && recorded.gpu_bytes > 0) {
      answer.gpu_bytes_ = recorded.gpu_bytes;
      answer.gpu_name_ = recorded.gpu_name;
    }
    const uint64_t weights = recorded.groups[static_cast<size_t>(PartGroup::kWeights)];
    if (!options.has_optimizer && !answer.plan_.serve)
      answer.plan_.optimizer = analysis::OptimizerOf(recorded);
    if (!options.model) {
      const uint64_t size = answer.plan_.precision == Precision::kSixteen ? 2 : 4;
      if (weights < size) {
        return recording->InFile(absl::FailedPreconditionError(
            "no memory of parameters was found at the peak. Give --parameters or --config"));
      }
      options.model.emplace();
      options.model->parameters = weights / size;
    }
  }
  answer.model_ = *std::move(options.model);
  auto estimate = analysis::EstimateOf(answer.model_, answer.plan_);
  if (!estimate.ok()) return estimate.status();
  answer.estimate_ = *std::move(estimate);
  answer.FindGpu();
  if (answer.plan_.serve && answer.model_.has_shape() && answer.gpu_bytes_ > 0)
    answer.serving_ = ServingOf(answer.model_, answer.plan_, answer.gpu_bytes_);
  answer.FindAlternatives();
  return answer;
}

void EstimateAnswer::FindGpu() {
  const MomentEstimate& peak = estimate_.Peak();
  if (gpu_bytes_ == 0) {
    for (const analysis::Gpu& gpu : analysis::KnownGpus()) {
      if (estimate_.without_activations || FitOf(estimate_, gpu.bytes) != Fit::kYes) continue;
      gpu_name_ = gpu.name;
      gpu_bytes_ = gpu.bytes;
      return;
    }
    const auto usual = analysis::GpuNamed("H100");
    gpu_name_ = usual->name;
    gpu_bytes_ = usual->bytes;
  }
  if (!plan_.serve && peak.bytes > gpu_bytes_) fewest_gpus_ = FewestGpus(model_, plan_, gpu_bytes_);
}

void EstimateAnswer::FindAlternatives() {
  const uint64_t now = estimate_.Peak().bytes;
  for (const auto& [options, plan] : Changes(model_, plan_)) {
    const auto changed = analysis::EstimateOf(model_, plan);
    if (changed.ok() && changed->Peak().bytes < now / 100 * 99)
      alternatives_.push_back({options, changed->Peak().bytes});
  }
  std::stable_sort(alternatives_.begin(), alternatives_.end(),
                   [](const Alternative& a, const Alternative& b) { return a.bytes < b.bytes; });
  if (alternatives_.size() > kLargestAlternatives) alternatives_.resize(kLargestAlternatives);
}

std::string EstimateAnswer::Headline() const {
  const uint64_t bytes = estimate_.Peak().bytes;
  std::string text = fmt::format(
      "Needs {}{}{} ({})", estimate_.without_activations ? "at least " : "", Bytes(bytes),
      plan_.gpus > 1 ? " per GPU" : "", Between(estimate_.Low(), estimate_.High()));
  const std::string gpu =
      plan_.gpus > 1 ? fmt::format("{} x {}", plan_.gpus, gpu_name_) : gpu_name_;
  if (bytes > gpu_bytes_)
    return text + fmt::format("; does not fit on {}: {} too much.", gpu, Bytes(bytes - gpu_bytes_));
  const bool is_sure = FitOf(estimate_, gpu_bytes_) == Fit::kYes && !estimate_.without_activations;
  return text + fmt::format("; {} on {}, leaves {}.", is_sure ? "fits" : "may fit", gpu,
                            Bytes(gpu_bytes_ - bytes));
}

std::string EstimateAnswer::ModelText() const {
  std::string text = model_.family.empty() ? "" : model_.family + ", ";
  text += ParametersText(model_.parameters);
  text += fmt::format(", {}", NameOf(plan_.precision));
  if (plan_.master_weights) text += " with fp32 master weights";
  if (!plan_.serve) text += fmt::format(", {}", NameOf(plan_.optimizer));
  if (plan_.zero > 0) text += fmt::format(", ZeRO {}", plan_.zero);
  if (plan_.lora > 0) {
    text += fmt::format(", LoRA of rank {} with {}", plan_.lora,
                        ParametersText(estimate_.trained_parameters));
  }
  text += "\n";
  if (!model_.has_shape()) return text;
  text += fmt::format("{} x {} tokens, {} attention", Count(plan_.batch), Count(plan_.length),
                      NameOf(plan_.attention));
  if (plan_.checkpointing != Checkpointing::kNone)
    text += fmt::format(", checkpointing {}", NameOf(plan_.checkpointing));
  return text + "\n";
}

std::string EstimateAnswer::PartsText() const {
  const MomentEstimate& peak = estimate_.Peak();
  std::string text;
  const auto row = [&](const std::string& name, uint64_t bytes, const std::string& range) {
    text +=
        fmt::format("  {:<28}  {:>9}{}{}\n", name, Bytes(bytes), range.empty() ? "" : "  ", range);
  };
  for (const PartEstimate& part : peak.parts)
    row(PartText(part.part), part.bytes, part.exact ? "exact" : Between(part.low, part.high));
  row("together", peak.bytes, "");
  return text;
}

std::string EstimateAnswer::MomentsText() const {
  if (estimate_.moments.size() < 2) return "";
  std::string text =
      fmt::format("\nThat is the {}. The other moments:\n", MomentText(estimate_.Peak().moment));
  for (const MomentEstimate& moment : estimate_.moments) {
    if (&moment != &estimate_.Peak())
      text += fmt::format("  {:<28}  {:>9}\n", MomentText(moment.moment), Bytes(moment.bytes));
  }
  return text;
}

std::string EstimateAnswer::RecordedText() const {
  const MomentEstimate& moment = NearestMoment(estimate_, *recorded_);
  const analysis::GroupBytes estimated = GroupsOf(moment);
  std::string text = fmt::format("\n  {:<28}  {:>9}  {:>9}  {:>10}\n", MomentText(moment.moment),
                                 "estimated", "recorded", "residual");
  uint64_t sum = 0;
  const auto row = [&](const std::string& name, uint64_t bytes, uint64_t recorded) {
    text += fmt::format("  {:<28}  {:>9}  {:>9}  {:>10}\n", name, Bytes(bytes), Bytes(recorded),
                        SignedBytes(static_cast<int64_t>(recorded - bytes)));
  };
  for (size_t i = 0; i < analysis::kPartGroups; ++i) {
    sum += estimated[i];
    if (estimated[i] == 0 && recorded_->groups[i] == 0) continue;
    row(GroupText(static_cast<PartGroup>(i)), estimated[i], recorded_->groups[i]);
  }
  row("together", sum, recorded_->peak);
  return text;
}

uint64_t EstimateAnswer::TokensLeft() const {
  const uint64_t used = plan_.batch * plan_.length;
  return serving_->tokens > used ? serving_->tokens - used : 0;
}

std::string EstimateAnswer::ServingText() const {
  const analysis::Serving& serving = *serving_;
  std::string text = fmt::format("\nKV cache: {} per token; {} holds {}, {} more than these.",
                                 Bytes(serving.bytes_per_token), gpu_name_,
                                 Plural(serving.tokens, "token"), Count(TokensLeft()));
  text += fmt::format("\nLargest batch of {} tokens: {}. Longest sequences in a batch of {}: {}.\n",
                      Count(plan_.length), Count(serving.largest_batch), Count(plan_.batch),
                      Plural(serving.longest, "token"));
  return text;
}

std::string EstimateAnswer::Text(const Terminal& terminal) const {
  std::string text = terminal.Bold(Headline()) + "\n";
  if (fewest_gpus_) {
    text += fmt::format("With --zero 3, {}{} of them would do.\n",
                        estimate_.without_activations ? "at least " : "", *fewest_gpus_);
  }
  text += ModelText() + "\n" + PartsText();
  text += (recorded_ ? RecordedText() : MomentsText());
  if (estimate_.without_activations) {
    text += fmt::format("\n{} depend on the layers: give --config, or --layers, --hidden, ...\n",
                        plan_.serve ? "KV cache and activations" : "Activations and logits");
  }
  if (estimate_.falls_back_to_eager)
    text += "No fused attention exists for fp32 with grouped keys: PyTorch computes it as eager.\n";
  if (serving_) text += ServingText();
  if (!recorded_ && !alternatives_.empty()) {
    text += "\nWhat would need less:\n";
    for (const Alternative& alternative : alternatives_)
      text += fmt::format("  {:<28}  {:>9}\n", alternative.options, Bytes(alternative.bytes));
  }
  return text;
}

std::string EstimateAnswer::Json() const {
  nlohmann::ordered_json json = NewJson("estimate", file_);
  const MomentEstimate& peak = estimate_.Peak();
  const auto known = [&](uint64_t number) {
    return number == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(number);
  };
  json["model"] = {{"family", OrNull(model_.family)},
                   {"parameters", model_.parameters},
                   {"trained_parameters", plan_.serve ? 0 : estimate_.trained_parameters},
                   {"layers", known(model_.Layers())},
                   {"hidden", known(model_.hidden)}};
  json["plan"] = {{"serve", plan_.serve},
                  {"precision", NameOf(plan_.precision)},
                  {"optimizer", NameOf(plan_.serve ? OptimizerKind::kNone : plan_.optimizer)},
                  {"zero", plan_.zero},
                  {"gpus", plan_.gpus},
                  {"batch", plan_.batch},
                  {"length", plan_.length},
                  {"attention", NameOf(plan_.attention)},
                  {"checkpointing", NameOf(plan_.checkpointing)}};
  json["bytes"] = peak.bytes;
  json["low_bytes"] = estimate_.Low();
  json["high_bytes"] = estimate_.High();
  json["kept_bytes"] = known(estimate_.kept);
  json["is_complete"] = !estimate_.without_activations;
  json["peak"] = NameOf(peak.moment);
  json["parts"] = PartsJson(peak);
  json["moments"] = nlohmann::ordered_json::array();
  for (const MomentEstimate& moment : estimate_.moments) {
    json["moments"].push_back(
        {{"name", NameOf(moment.moment)}, {"bytes", moment.bytes}, {"parts", PartsJson(moment)}});
  }
  json["gpu"] = {{"name", OrNull(gpu_name_)},
                 {"total_bytes", gpu_bytes_},
                 {"fits", NameOf(FitOf(estimate_, gpu_bytes_))},
                 {"fewest_gpus", OrNull(fewest_gpus_)}};
  json["serving"] = nullptr;
  if (serving_) {
    json["serving"] = {{"bytes_per_token", serving_->bytes_per_token},
                       {"tokens", serving_->tokens},
                       {"tokens_left", TokensLeft()},
                       {"largest_batch", serving_->largest_batch},
                       {"longest", serving_->longest}};
  }
  json["recorded"] = nullptr;
  if (recorded_) {
    const MomentEstimate& moment = NearestMoment(estimate_, *recorded_);
    const analysis::GroupBytes estimated = GroupsOf(moment);
    auto groups = nlohmann::ordered_json::array();
    for (size_t i = 0; i < analysis::kPartGroups; ++i) {
      groups.push_back({{"name", NameOf(static_cast<PartGroup>(i))},
                        {"bytes", estimated[i]},
                        {"recorded_bytes", recorded_->groups[i]}});
    }
    json["recorded"] = {{"device", recorded_->device},
                        {"peak_bytes", recorded_->peak},
                        {"moment", NameOf(moment.moment)},
                        {"groups", std::move(groups)}};
  }
  json["alternatives"] = nlohmann::ordered_json::array();
  for (const Alternative& alternative : alternatives_)
    json["alternatives"].push_back(
        {{"options", alternative.options}, {"bytes", alternative.bytes}});
  return JsonText(json);
}

}  // namespace gmt::answers
