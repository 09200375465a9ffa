// gpumemtrace show: explains an ID that an answer printed.

#include <fmt/format.h>

#include <memory>

#include "analysis/show/subject.h"
#include "answers/show/explain.h"
#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct ShowArguments {
  std::string file, id;
  int64_t top = 0;
  bool json = false;
  FrameOptions frames;
};

absl::StatusOr<int> Show(const ShowArguments& options, const Terminal& terminal) {
  const auto subject = analysis::ParseSubject(options.id);
  if (!subject.ok()) return UsageError(subject.status().message());
  if (options.top < 0) return UsageError("--top: expected a number of rows, 1 or more");
  auto rules = options.frames.Rules();
  if (!rules.ok()) return rules.status();
  const auto recording =
      OpenRecording(options.file, {.frames = *std::move(rules), .text = FormFor(options.json)});
  if (!recording.ok()) return recording.status();
  const auto answer = answers::Explain(
      **recording, *subject, {options.frames.Shown(), static_cast<size_t>(options.top)}, terminal);
  if (!answer.ok()) return answer.status();
  fmt::print("{}", options.json ? answer->json : answer->text);
  return kDone;
}

}  // namespace

void AddShow(Program& program) {
  auto options = std::make_shared<ShowArguments>();
  Command command =
      program.AddVerb("show", "Explain an ID: stack/7, leak/1, step/12, block/0x7f00, ...",
                      [options](const Terminal& terminal) { return Show(*options, terminal); });
  command.Argument("FILE", &options->file, "recording");
  command.Argument("ID", &options->id,
                   "ID printed by an answer, address, or name of a range or mark");
  command.Option("--top", &options->top, "N", "rows per list");
  options->frames.AddTo(command);
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
