// gpumemtrace estimate: how much memory a model that has not been run will need.

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analysis/estimate/gpus.h"
#include "answers/estimate/estimate_answer.h"
#include "cli/command.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"
#include "session/options.h"

namespace gmt::cli {
namespace {

using analysis::OptimizerKind;
using analysis::Precision;

constexpr int64_t kNotGiven = -1;
constexpr size_t kMaxConfigBytes = 4 << 20;

struct EstimateArguments {
  std::string parameters, config, precision, optimizer, checkpointing, attention = "flash";
  std::string kv_precision, gpu, recording;
  int64_t layers = kNotGiven, hidden = kNotGiven, heads = kNotGiven, vocabulary = kNotGiven;
  int64_t zero = 0, gpus = 1, lora = 0, batch = kNotGiven, length = kNotGiven;
  bool master_weights = false, fp32_gradients = false, accumulate = false, serve = false,
       json = false;

  bool has_shape() const {
    return layers != kNotGiven || hidden != kNotGiven || heads != kNotGiven ||
           vocabulary != kNotGiven;
  }
};

// "7B", "124M", "6.74e9", "6738415616".
std::optional<uint64_t> ParseParameters(std::string text) {
  double factor = 1;
  if (!text.empty()) {
    const int unit = std::toupper(static_cast<unsigned char>(text.back()));
    factor = unit == 'K' ? 1e3 : unit == 'M' ? 1e6 : unit == 'B' ? 1e9 : unit == 'T' ? 1e12 : 1;
    if (factor > 1) text.pop_back();
  }
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || !(number * factor >= 1 && number * factor <= 1e13))
    return std::nullopt;
  return static_cast<uint64_t>(number * factor + 0.5);
}

absl::StatusOr<uint64_t> Number(const char* option, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most)
    return UsageError(fmt::format("{}: expected a number from {} to {}", option, least, most));
  return static_cast<uint64_t>(value);
}

absl::StatusOr<std::string> ReadConfig(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  std::string text;
  text.resize(kMaxConfigBytes);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

absl::StatusOr<std::optional<analysis::Model>> ModelOf(const EstimateArguments& options,
                                                       uint64_t length) {
  std::optional<analysis::Model> model;
  if (!options.config.empty() && (options.has_shape() || !options.parameters.empty()))
    return UsageError("--config has the shape and the parameters; leave out the others");
  if (!options.config.empty()) {
    const auto text = ReadConfig(options.config);
    if (!text.ok()) return text.status();
    auto read = analysis::ModelOfConfig(*text);
    if (!read.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.config, ": ", read.status().message()));
    }
    model = *std::move(read);
  } else if (options.has_shape()) {
    analysis::GptShape shape;
    shape.positions = length;
    const std::pair<const char*, std::pair<int64_t, uint64_t*>> numbers[] = {
        {"--layers", {options.layers, &shape.layers}},
        {"--hidden", {options.hidden, &shape.hidden}},
        {"--heads", {options.heads, &shape.heads}},
        {"--vocabulary", {options.vocabulary, &shape.vocabulary}}};
    for (const auto& [name, number] : numbers) {
      if (number.first == kNotGiven)
        return UsageError("--layers, --hidden, --heads and --vocabulary belong together");
      const auto value = Number(name, number.first, 1, 100'000'000);
      if (!value.ok()) return value.status();
      *number.second = *value;
    }
    auto made = analysis::ModelOfShape(shape);
    if (!made.ok()) return UsageError(made.status().message());
    model = *std::move(made);
  }
  if (!options.parameters.empty()) {
    const auto count = ParseParameters(options.parameters);
    if (!count) {
      return UsageError(absl::StrCat("--parameters: '", options.parameters,
                                     "' is not a number such as 7B or 124M"));
    }
    if (!model) model.emplace();
    model->parameters = *count;
  }
  return model;
}

absl::Status ReadNumbers(const EstimateArguments& options, answers::EstimateOptions& made) {
  analysis::Plan& plan = made.plan;
  const auto zero = Number("--zero", options.zero, 0, 3);
  const auto gpus = Number("--gpus", options.gpus, 1, 1'000'000);
  const auto lora = Number("--lora", options.lora, 0, 100'000);
  const auto batch = Number("--batch", options.batch == kNotGiven ? 1 : options.batch, 1, 1 << 20);
  const auto length =
      Number("--seq", options.length == kNotGiven ? 1024 : options.length, 1, 1 << 26);
  for (const auto* number : {&zero, &gpus, &lora, &batch, &length}) {
    if (!number->ok()) return number->status();
  }
  plan.zero = static_cast<int>(*zero);
  plan.gpus = *gpus;
  plan.lora = *lora;
  plan.batch = *batch;
  plan.length = *length;
  made.has_batch = options.batch != kNotGiven;
  made.has_length = options.length != kNotGiven;
  made.has_optimizer = !options.optimizer.empty();
  return absl::OkStatus();
}

absl::Status ReadGpu(const std::string& text, answers::EstimateOptions& made) {
  if (text.empty()) return absl::OkStatus();
  if (session::ParseSize(text, &made.gpu_bytes) && made.gpu_bytes > 0) {
    made.gpu_name = text;
    return absl::OkStatus();
  }
  const auto gpu = analysis::GpuNamed(text);
  if (!gpu) {
    std::string names;
    for (const analysis::Gpu& known : analysis::KnownGpus())
      absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(known.name));
    return UsageError(
        absl::StrCat("--gpu: '", text, "' is neither a size such as 80GiB nor one of ", names));
  }
  made.gpu_name = gpu->name;
  made.gpu_bytes = gpu->bytes;
  return absl::OkStatus();
}

absl::StatusOr<answers::EstimateOptions> Options(const EstimateArguments& options) {
  answers::EstimateOptions made;
  made.file = options.config;
  analysis::Plan& plan = made.plan;
  if (absl::Status status = ReadNumbers(options, made); !status.ok()) return status;
  if (absl::Status status = ReadGpu(options.gpu, made); !status.ok()) return status;
  plan.serve = options.serve;
  plan.master_weights = options.master_weights;
  plan.fp32_gradients = options.fp32_gradients;
  plan.accumulate = options.accumulate;
  if (options.serve && !options.optimizer.empty())
    return UsageError("--serve has no training: leave out --optimizer");
  if (!options.serve && !options.kv_precision.empty())
    return UsageError("--kv-precision is for --serve: training has no KV cache");
  const std::string& precision = options.precision;
  if (precision == "fp32") {
    plan.precision = Precision::kFp32;
  } else if (precision == "bf16" || precision == "fp16" || (precision.empty() && options.serve)) {
    plan.precision = Precision::kSixteen;
  }
  const std::pair<const char*, OptimizerKind> optimizers[] = {
      {"adam8bit", OptimizerKind::kAdam8Bit},
      {"sgd", OptimizerKind::kSgd},
      {"sgd-momentum", OptimizerKind::kSgdMomentum},
      {"adafactor", OptimizerKind::kAdafactor},
      {"lion", OptimizerKind::kLion},
      {"none", OptimizerKind::kNone}};
  for (const auto& [name, optimizer] : optimizers) {
    if (options.optimizer == name) plan.optimizer = optimizer;
  }
  if (options.checkpointing == "full") plan.checkpointing = analysis::Checkpointing::kFull;
  if (options.checkpointing == "selective")
    plan.checkpointing = analysis::Checkpointing::kSelective;
  if (options.attention == "eager") plan.attention = analysis::Attention::kEager;
  const std::string& kv = options.kv_precision;
  plan.kv_bytes = kv == "fp32" ? 4 : kv == "fp8" || kv == "int8" ? 1 : 2;
  if (kv.empty() && plan.precision == Precision::kFp32) plan.kv_bytes = 4;
  auto model = ModelOf(options, plan.length);
  if (!model.ok()) return model.status();
  made.model = *std::move(model);
  if (!made.model && options.recording.empty()) {
    return UsageError(
        "which model? Give --config FILE, --parameters N, its shape (--layers ...), or --recording "
        "FILE");
  }
  return made;
}

absl::StatusOr<int> Estimate(const EstimateArguments& options, const Terminal& terminal) {
  auto made = Options(options);
  if (!made.ok()) return made.status();
  std::unique_ptr<answers::Recording> recording;
  if (!options.recording.empty()) {
    auto opened = OpenRecording(options.recording, {.text = FormFor(options.json)});
    if (!opened.ok()) return opened.status();
    recording = *std::move(opened);
  }
  const auto answer = answers::EstimateAnswer::Make(*std::move(made), recording.get());
  if (absl::IsInvalidArgument(answer.status()))  // options that contradict each other or the model
    return UsageError(answer.status().message());
  if (!answer.ok()) return answer.status();
  fmt::print("{}", options.json ? answer->Json() : answer->Text(terminal));
  if (!options.json && recording) {
    for (const std::string& lack : recording->lacks()) PrintNote(lack);
  }
  return kDone;
}

}  // namespace

void AddEstimate(Program& program) {
  auto options = std::make_shared<EstimateArguments>();
  Command command =
      program.AddVerb("estimate", "Predict how much memory a model needs that has not been run",
                      [options](const Terminal& terminal) { return Estimate(*options, terminal); });
  command.Option("--config", &options->config, "FILE", "config.json of the transformers library");
  command.Option("--parameters", &options->parameters, "N",
                 "number of parameters, such as 7B, instead of --config");
  command.Option("--layers", &options->layers, "N",
                 "shape of a GPT, with --hidden, --heads and --vocabulary, instead of --config");
  command.Option("--hidden", &options->hidden, "N", "width of its layers");
  command.Option("--heads", &options->heads, "N", "heads of its attention");
  command.Option("--vocabulary", &options->vocabulary, "N", "tokens that it knows");
  command.Choice("--precision", &options->precision, {"fp32", "mixed", "bf16", "fp16"},
                 "of weights; mixed: fp32 with autocast; default: mixed, with --serve bf16");
  command.Flag("--master-weights", &options->master_weights,
               "16-bit weights have a copy and optimizer state in fp32");
  command.Flag("--fp32-gradients", &options->fp32_gradients, "16-bit weights have fp32 gradients");
  command.Choice("--optimizer", &options->optimizer,
                 {"adamw", "adam8bit", "sgd", "sgd-momentum", "adafactor", "lion", "none"},
                 "default: adamw");
  command.Option("--zero", &options->zero, "0-3", "stage of ZeRO; 3: FSDP");
  command.Option("--gpus", &options->gpus, "N", "data-parallel GPUs; default: 1");
  command.Option("--lora", &options->lora, "RANK",
                 "train adapters of all matrices in layers, not the weights");
  command.Option("--batch", &options->batch, "N", "sequences per GPU; default: 1");
  command.Option("--seq", &options->length, "N", "tokens per sequence; default: 1024");
  command.Flag("--accumulate", &options->accumulate, "gradients are kept during the forward pass");
  command.Choice("--checkpointing", &options->checkpointing, {"none", "selective", "full"},
                 "recompute in the backward pass; selective: attention only; default: none");
  command.Choice("--attention", &options->attention, {"eager", "flash"},
                 "eager: keeps its probabilities; default: flash");
  command.Flag("--serve", &options->serve, "generate text with a KV cache instead of training");
  command.Choice("--kv-precision", &options->kv_precision, {"fp32", "bf16", "fp16", "fp8", "int8"},
                 "of the KV cache; default: that of the weights");
  command.Option("--gpu", &options->gpu, "NAME|SIZE",
                 "this GPU, such as H100 or 80GiB; default: the smallest that suffices");
  command.Option("--recording", &options->recording, "FILE",
                 "take batch, length, GPU and parameters from a recording, and compare with it");
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
