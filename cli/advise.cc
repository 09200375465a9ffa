// gpumemtrace advise: what to change next to use less memory.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "answers/advise/advise_answer.h"
#include "cli/command.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"
#include "session/options.h"

namespace gmt::cli {
namespace {

struct AdviseArguments {
  std::string file, capacity;
  std::optional<int32_t> device;
  int64_t gpus = 2;
  bool all = false, json = false;
};

absl::StatusOr<int> Advise(const AdviseArguments& arguments, const Terminal& terminal) {
  analysis::AdviseOptions options;
  options.device = arguments.device;
  if (arguments.gpus < 2) return UsageError("--gpus: a model is sharded over 2 GPUs or more");
  options.gpus = static_cast<uint64_t>(arguments.gpus);
  if (!arguments.capacity.empty() &&
      !session::ParseSize(arguments.capacity, &options.capacity.emplace())) {
    return UsageError(
        absl::StrCat("--capacity: '", arguments.capacity, "' is not a size such as 40GiB"));
  }
  options.replay_all = arguments.all || arguments.json;
  const auto recording = OpenRecording(arguments.file, {.text = FormFor(arguments.json)});
  if (!recording.ok()) return recording.status();
  const auto answer = answers::AdviseAnswer::Make(**recording, options);
  if (!answer.ok()) return answer.status();
  fmt::print("{}", arguments.json ? answer->Json() : answer->Text(terminal, arguments.all));
  if (!arguments.json) {
    for (const std::string& lack : (*recording)->lacks()) PrintNote(lack);
  }
  return answer->report().refusal.empty() ? kDone : kFailed;
}

}  // namespace

void AddAdvise(Program& program) {
  auto arguments = std::make_shared<AdviseArguments>();
  Command command = program.AddVerb(
      "advise", "Say what to change next to use less memory, and how much it saves",
      [arguments](const Terminal& terminal) { return Advise(*arguments, terminal); });
  command.Argument("FILE", &arguments->file, "recording");
  command.Flag(
      "--all", &arguments->all,
      "all changes in the order in which they are worth trying, and those that do not help");
  command.Option("--capacity", &arguments->capacity, "SIZE",
                 "what the GPU can provide to the process, such as 40GiB; default: as recorded");
  command.Option("--gpus", &arguments->gpus, "N",
                 "over how many GPUs the model could be sharded; default: 2");
  command.DeviceOption(&arguments->device,
                       "this GPU; default: the one that ran out of memory or has the highest peak");
  command.Flag("--json", &arguments->json, "print JSON, with all changes");
}

}  // namespace gmt::cli
