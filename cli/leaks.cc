// gpumemtrace leaks: finds what holds more and more memory.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "answers/leaks/leaks_answer.h"
#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"
#include "cli/window_options.h"

namespace gmt::cli {
namespace {

struct LeaksArguments {
  std::string file;
  std::optional<int32_t> device;
  int64_t top = 0;
  bool fail = false, json = false;
  WindowOptions window;
  FrameOptions frames;
};

absl::StatusOr<int> Leaks(const LeaksArguments& options, const Terminal& terminal) {
  analysis::LeakOptions selection;
  auto window = options.window.Window();
  if (!window.ok()) return window.status();
  if (options.top < 0) return UsageError("--top: expected a number of suspects, 1 or more");
  selection.window = *window;
  selection.device = options.device;
  auto rules = options.frames.Rules();
  if (!rules.ok()) return rules.status();
  const auto recording =
      OpenRecording(options.file, {.frames = *std::move(rules), .text = FormFor(options.json)});
  if (!recording.ok()) return recording.status();
  const auto answer = answers::LeaksAnswer::Make(**recording, selection);
  if (!answer.ok()) return answer.status();
  const auto top = static_cast<size_t>(options.top);
  fmt::print("{}", options.json ? answer->Json(top) : answer->Text(terminal, top));
  return options.fail && answer->HasLeak() ? kGateFailed : kDone;
}

}  // namespace

void AddLeaks(Program& program) {
  auto options = std::make_shared<LeaksArguments>();
  Command command =
      program.AddVerb("leaks", "Find what holds more memory after each step",
                      [options](const Terminal& terminal) { return Leaks(*options, terminal); });
  command.Argument("FILE", &options->file, "recording");
  command.DeviceOption(&options->device, "only this GPU");
  options->window.AddTo(command, "only steps that begin after", "only steps that end before");
  command.Option("--top", &options->top, "N", "number of suspects shown");
  command.Flag("--fail", &options->fail, "exit with code 3 if there is a leak or a likely leak");
  options->frames.AddTo(command);
  command.Flag("--json", &options->json, "print JSON, with every stack");
}

}  // namespace gmt::cli
