// gpumemtrace whatif: replays PyTorch's allocator with other settings, or on another device.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "answers/whatif/whatif_answer.h"
#include "cli/command.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"
#include "session/options.h"

namespace gmt::cli {
namespace {

struct WhatifArguments {
  std::string file;
  std::vector<std::string> settings, capacities, without;
  int64_t device = -1;
  bool expandable_segments = false, set_to_none = false, json = false;
};

absl::StatusOr<answers::WhatifOptions> Scenarios(const WhatifArguments& options) {
  answers::WhatifOptions scenarios;
  if (options.device >= 0) scenarios.device = static_cast<int32_t>(options.device);
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
  scenarios.set_to_none = options.set_to_none;
  scenarios.without = options.without;
  return scenarios;
}

absl::StatusOr<int> Whatif(const WhatifArguments& options, const Terminal& terminal) {
  const auto scenarios = Scenarios(options);
  if (!scenarios.ok()) return scenarios.status();
  const auto recording = OpenRecording(options.file, {.text = FormFor(options.json)});
  if (!recording.ok()) return recording.status();
  const auto answer = answers::WhatifAnswer::Make(**recording, *scenarios);
  if (!answer.ok()) return answer.status();
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
  command.Option("--device", &options->device, "N",
                 "this GPU; default: the one with the highest peak");
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
