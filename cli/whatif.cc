// gpumemtrace whatif: replays PyTorch's allocator with other settings, on another device, or for a
// changed program.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "analysis/estimate/gpus.h"
#include "answers/whatif/whatif_answer.h"
#include "cli/command.h"
#include "cli/open_recording.h"
#include "cli/record/verify_settings.h"
#include "cli/verbs.h"
#include "session/options.h"

namespace gmt::cli {
namespace {

constexpr uint64_t kLargestInput = 1'000'000'000;

struct WhatifArguments {
  std::string file;
  std::vector<std::string> settings, capacities, without, batches, lengths, buckets;
  std::vector<std::string> checkpoints, optimizers, dtypes, shards, fits;
  std::optional<int32_t> device;
  bool expandable_segments = false, set_to_none = false, verify = false, json = false;
};

// "2x", "0.5x": a factor. "16": a number.
std::optional<answers::InputSize> ParseInputSize(const std::string& text) {
  answers::InputSize size;
  size.text = text;
  size.is_factor = absl::EndsWith(text, "x");
  const char* const end = text.data() + text.size() - (size.is_factor ? 1 : 0);
  const auto [stop, error] = std::from_chars(text.data(), end, size.value);
  if (error != std::errc() || stop != end || !(size.value > 0 && size.value <= kLargestInput))
    return std::nullopt;
  if (!size.is_factor && size.value != std::floor(size.value)) return std::nullopt;
  return size;
}

absl::Status ParseInputSizes(const char* option, const std::vector<std::string>& texts,
                             std::vector<answers::InputSize>* sizes) {
  for (const std::string& text : texts) {
    const auto size = ParseInputSize(text);
    if (!size) {
      return UsageError(absl::StrCat(option, ": '", text,
                                     "' is neither a multiple such as 2x nor a number such as 16"));
    }
    sizes->push_back(*size);
  }
  return absl::OkStatus();
}

absl::Status ParseNumbers(const char* option, const std::vector<std::string>& texts, uint64_t least,
                          std::vector<uint64_t>* numbers) {
  for (const std::string& text : texts) {
    if (!absl::SimpleAtoi(text, &numbers->emplace_back()) || numbers->back() < least ||
        numbers->back() > kLargestInput)
      return UsageError(absl::StrCat(option, ": '", text, "' is not a number from ", least));
  }
  return absl::OkStatus();
}

absl::Status ParseDevices(const std::vector<std::string>& texts,
                          std::vector<answers::FitDevice>* devices) {
  for (const std::string& text : texts) {
    uint64_t bytes = 0;
    if (const auto gpu = analysis::GpuNamed(text)) {  // also "4090"
      devices->push_back({std::string(gpu->name), gpu->bytes});
    } else if (session::ParseSize(text, &bytes) && bytes > 0) {
      devices->push_back({text, bytes});
    } else {
      return UsageError(absl::StrCat("--fit: '", text,
                                     "' is neither a size such as 24GiB nor a known GPU such as "
                                     "H100"));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseProgram(const WhatifArguments& options, answers::ProgramOptions* program) {
  program->set_to_none = options.set_to_none;
  program->without = options.without;
  program->checkpoints = options.checkpoints;
  program->optimizers = options.optimizers;
  for (const std::string& optimizer : options.optimizers) {
    if (optimizer != "8bit" && optimizer != "fused" && optimizer != "foreach" &&
        optimizer != "single") {
      return UsageError(absl::StrCat("--optimizer: '", optimizer,
                                     "' is none of 8bit, fused, foreach and single"));
    }
  }
  for (const std::string& dtype : options.dtypes) {
    if (dtype != "bf16")
      return UsageError(absl::StrCat("--dtype: '", dtype, "' is not bf16, the only one"));
    program->half_precision = true;
  }
  absl::Status status = ParseInputSizes("--batch", options.batches, &program->batches);
  status.Update(ParseInputSizes("--seq", options.lengths, &program->lengths));
  status.Update(ParseNumbers("--bucket-seq", options.buckets, 1, &program->buckets));
  status.Update(ParseNumbers("--shard", options.shards, 2, &program->shards));
  status.Update(ParseDevices(options.fits, &program->fits));
  return status;
}

absl::StatusOr<answers::WhatifOptions> Scenarios(const WhatifArguments& options) {
  answers::WhatifOptions scenarios;
  scenarios.device = options.device;
  if (options.expandable_segments) scenarios.settings.push_back("expandable_segments:True");
  for (const std::string& setting : options.settings) {
    if (absl::Status status = analysis::AllocatorSettings().Change(setting); !status.ok())
      return UsageError(absl::StrCat("--set: ", status.message()));
    scenarios.settings.push_back(setting);
  }
  for (const std::string& capacity : options.capacities) {
    if (!session::ParseSize(capacity, &scenarios.capacities.emplace_back()))
      return UsageError(absl::StrCat("--capacity: '", capacity, "' is not a size such as 40GiB"));
  }
  if (absl::Status status = ParseProgram(options, &scenarios.program); !status.ok()) return status;
  return scenarios;
}

absl::StatusOr<int> Whatif(const WhatifArguments& options, const Terminal& terminal) {
  const auto scenarios = Scenarios(options);
  if (!scenarios.ok()) return scenarios.status();
  if (options.verify && scenarios->settings.empty()) {
    return UsageError(
        "--verify runs the command again with settings of the allocator: name one with --set or "
        "--expandable-segments");
  }
  const auto recording = OpenRecording(options.file, {.text = FormFor(options.json)});
  if (!recording.ok()) return recording.status();
  auto answer = answers::WhatifAnswer::Make(**recording, *scenarios);
  if (!answer.ok()) return answer.status();
  if (options.verify && !answer->is_refused()) {
    const absl::Status verified = answer->Verify([&](const std::string& settings) {
      return RunWithSettings((*recording)->trace(), answer->device(), settings);
    });
    if (!verified.ok()) return verified;
  }
  fmt::print("{}", options.json ? answer->Json() : answer->Text(terminal));
  if (!options.json) {
    for (const std::string& lack : (*recording)->lacks()) PrintNote(lack);
  }
  return answer->is_refused() ? kFailed : kDone;
}

}  // namespace

void AddWhatif(Program& program) {
  auto options = std::make_shared<WhatifArguments>();
  Command command = program.AddVerb(
      "whatif", "Predict what PyTorch's allocator would reserve with other settings",
      [options](const Terminal& terminal) { return Whatif(*options, terminal); });
  command.Argument("FILE", &options->file, "recording");
  command.Option("--set", &options->settings, "KEY=VALUE",
                 "a scenario with this option of PYTORCH_ALLOC_CONF; several: separated by commas");
  command.Flag("--expandable-segments", &options->expandable_segments,
               "a scenario with expandable_segments:True");
  command.Option("--capacity", &options->capacities, "SIZE",
                 "a scenario in which the GPU can provide only this much, such as 40GiB");
  command.Flag("--set-to-none", &options->set_to_none,
               "a scenario in which gradients end with the optimizer's step");
  command.Option("--without", &options->without, "LEAK",
                 "a scenario without what this leak keeps, such as leak/1");
  command.Option("--batch", &options->batches, "SIZE",
                 "a scenario with batches of this size, such as 2x or 16");
  command.Option("--seq", &options->lengths, "LENGTH",
                 "a scenario with sequences of this length, such as 2x or 2048");
  command.Option("--bucket-seq", &options->buckets, "N",
                 "a scenario in which lengths of sequences are padded to multiples of N");
  command.Option("--fit", &options->fits, "GPU|SIZE",
                 "the largest batch that fits this GPU, such as H100 or 24GiB");
  command.Option("--checkpoint", &options->checkpoints, "LAYERS",
                 "a scenario in which the layers of this class are recomputed; auto: the best");
  command.Option("--optimizer", &options->optimizers, "KIND",
                 "a scenario with another optimizer: 8bit, fused, foreach, or single "
                 "(foreach=False)");
  command.Option("--dtype", &options->dtypes, "bf16", "a scenario with autocast to bfloat16");
  command.Option("--shard", &options->shards, "N",
                 "a scenario with the model divided among N GPUs");
  command.Flag("--verify", &options->verify,
               "run the recorded command again with each setting, and compare");
  command.DeviceOption(&options->device, "this GPU; default: the one with the highest peak");
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
