// gpumemtrace diff: shows what holds more or less memory in one recording than in another.

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "answers/diff/diff_answer.h"
#include "answers/diff/limit.h"
#include "cli/command.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct DiffArguments {
  std::string base, changed, at, fail_above;
  std::optional<int32_t> device;
  int64_t top = 0;
  bool json = false, markdown = false;
};

absl::StatusOr<analysis::DiffOptions> Selection(const DiffArguments& options) {
  analysis::DiffOptions selection;
  if (options.top < 0) return UsageError("--top: expected a number of rows, 1 or more");
  if (options.json && options.markdown)
    return UsageError("--json and --markdown exclude each other");
  selection.device = options.device;
  if (options.at.empty()) return selection;
  auto at = analysis::ParseAt(options.at);
  if (!at.ok()) return UsageError(absl::StrCat("--at: ", at.status().message()));
  selection.at = *std::move(at);
  return selection;
}

absl::StatusOr<int> RunDiff(const DiffArguments& options, const Terminal& terminal) {
  const auto selection = Selection(options);
  if (!selection.ok()) return selection.status();
  std::optional<answers::Limit> limit;
  if (!options.fail_above.empty()) {
    const auto parsed = answers::ParseLimit(options.fail_above);
    if (!parsed.ok()) return UsageError(parsed.status().message());
    limit = *parsed;
  }
  const auto base = OpenRecording(options.base, {.text = FormFor(options.json)});
  if (!base.ok()) return base.status();
  const auto changed = OpenRecording(options.changed, {.text = FormFor(options.json)});
  if (!changed.ok()) return changed.status();
  const auto answer = answers::DiffAnswer::Make(**base, **changed, *selection, limit);
  if (!answer.ok()) return answer.status();
  const auto top = static_cast<size_t>(options.top);
  fmt::print("{}", options.json       ? answer->Json()
                   : options.markdown ? answer->Markdown(top)
                                      : answer->Text(terminal, top));
  return answer->HasFailed() ? kGateFailed : kDone;
}

}  // namespace

void AddDiff(Program& program) {
  auto options = std::make_shared<DiffArguments>();
  Command command =
      program.AddVerb("diff", "Compare two recordings: what holds more memory, and where",
                      [options](const Terminal& terminal) { return RunDiff(*options, terminal); });
  command.Argument("BASE", &options->base, "recording to compare with");
  command.Argument("NEW", &options->changed, "recording to compare");
  command.Option("--at", &options->at, "WHEN",
                 "moment in both: peak, end, oom, step:N, event:N, t:SECONDS or snapshot:NAME");
  command.Suggest("--at", {"peak", "end", "oom"});
  command.DeviceOption(&options->device, "only this GPU");
  command.Option("--top", &options->top, "N", "rows of the table");
  command.Option("--fail-above", &options->fail_above, "LIMIT",
                 "exit with code 3 if a GPU grew by more than this many bytes or percent");
  command.Flag("--markdown", &options->markdown, "print a comment for a pull request");
  command.Flag("--json", &options->json, "print JSON, with every frame");
}

}  // namespace gmt::cli
