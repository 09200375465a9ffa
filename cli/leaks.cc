// gpumemtrace leaks: finds what holds more and more memory.

#include "analysis/leaks/leaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analysis/examination.h"
#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/leaks_text.h"
#include "cli/load_trace.h"
#include "cli/verbs.h"
#include "cli/window_options.h"

namespace gmt::cli {
namespace {

constexpr int64_t kSuspectsShown = 3;

struct LeaksArguments {
  std::string file;
  int64_t device = -1, top = 0;
  bool fail = false, json = false;
  WindowOptions window;
  FrameOptions frames;
};

bool IsVerdict(const analysis::LeakSuspect& suspect) {
  return suspect.tier != analysis::LeakTier::kPossible;
}

absl::StatusOr<int> Leaks(const LeaksArguments& options, const Terminal& terminal) {
  analysis::LeakOptions selection;
  auto window = options.window.Window();
  if (!window.ok()) return window.status();
  if (options.top < 0) return UsageError("--top: expected a number of suspects, 1 or more");
  selection.window = *window;
  if (options.device >= 0) selection.device = static_cast<int32_t>(options.device);
  const auto rules = options.frames.Rules();
  if (!rules.ok()) return rules.status();
  auto loaded = LoadTrace(options.file);
  if (!loaded.ok()) return loaded.status();
  const analysis::Examination examination((*loaded)->trace, (*loaded)->definitions, *rules);
  const analysis::LeakReport report = analysis::FindLeaks(examination, selection);
  LeaksShown shown{options.file, static_cast<size_t>(options.top), (*loaded)->lacks};
  if (options.json) {
    if (options.top == 0) shown.top = report.suspects.size();
    fmt::print("{}", LeaksJson(report, shown, examination.stacks()));
  } else {
    if (options.top == 0) shown.top = kSuspectsShown;
    SourceLines sources((*loaded)->trace.start_unix_ns);
    fmt::print("{}", LeaksText(report, shown, sources, terminal));
  }
  const bool leaks = std::any_of(report.suspects.begin(), report.suspects.end(), IsVerdict);
  return options.fail && leaks ? kGateFailed : kDone;
}

}  // namespace

void AddLeaks(Program& program) {
  auto options = std::make_shared<LeaksArguments>();
  Command command =
      program.AddVerb("leaks", "Find what holds more memory after each step",
                      [options](const Terminal& terminal) { return Leaks(*options, terminal); });
  command.Argument("FILE", &options->file, "recording");
  command.Option("--device", &options->device, "N", "only this GPU");
  options->window.AddTo(command, "only steps that begin after", "only steps that end before");
  command.Option("--top", &options->top, "N", "number of suspects shown");
  command.Flag("--fail", &options->fail, "exit with code 3 if there is a leak or a likely leak");
  options->frames.AddTo(command);
  command.Flag("--json", &options->json, "print JSON, with every stack");
}

}  // namespace gmt::cli
