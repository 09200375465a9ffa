// gpumemtrace show: explains an ID that an answer printed.

#include "cli/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/json_output.h"
#include "cli/load_trace.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

using analysis::Subject;

constexpr int64_t kRowsShown = 5;
constexpr size_t kLacksShown = 2;

struct ShowArguments {
  std::string file, id;
  int64_t top = 0;
  bool json = false;
  FrameOptions frames;
};

ShowResult Explain(const ShowInput& input, const Subject& subject) {
  switch (subject.kind) {
    case Subject::kStep:
      return ShowStep(input, subject);
    case Subject::kSnapshot:
      return ShowSnapshot(input, subject);
    case Subject::kEvent:
      return ShowEvent(input, subject);
    case Subject::kBlock:
      return ShowPlace(input, subject);
    case Subject::kRange:
    case Subject::kMark:
    case Subject::kNamed:
      return ShowOccurrences(input, subject);
    default:
      return ShowMemory(input, subject);
  }
}

// Finding suspects walks over all cycles. Only kinds that can be part of a suspect need it.
bool NeedsLeaks(const Subject& subject) {
  return subject.kind == Subject::kLeak || subject.kind == Subject::kStack ||
         subject.kind == Subject::kBefore;
}

void AddLacks(const std::vector<std::string>& lacks, ShowPage& page) {
  if (lacks.empty()) return;
  page.Part("Not known");
  for (size_t i = 0; i < std::min(lacks.size(), kLacksShown); ++i) page.Line("  " + lacks[i]);
  if (lacks.size() > kLacksShown) {
    page.Line(fmt::format("  and {} more: gpumemtrace report", lacks.size() - kLacksShown));
  }
}

absl::StatusOr<int> Show(const ShowArguments& options, const Terminal& terminal) {
  const auto subject = analysis::ParseSubject(options.id);
  if (!subject.ok()) return UsageError(subject.status().message());
  if (options.top < 0) return UsageError("--top: expected a number of rows, 1 or more");
  const auto rules = options.frames.Rules();
  if (!rules.ok()) return rules.status();
  auto loaded = LoadTrace(options.file);
  if (!loaded.ok()) return loaded.status();
  const analysis::Examination examination((*loaded)->trace, (*loaded)->definitions, *rules);
  const analysis::Categories categories = analysis::Categorize(examination);
  const analysis::LeakReport leaks =
      NeedsLeaks(*subject) ? analysis::FindLeaks(examination) : analysis::LeakReport{};
  SourceLines sources((*loaded)->trace.start_unix_ns);
  const ShowInput input{examination,
                        categories,
                        leaks,
                        options.file,
                        options.frames.raw ? FramesShown::kRaw : FramesShown::kFolded,
                        static_cast<size_t>(options.top == 0 ? kRowsShown : options.top),
                        terminal,
                        sources,
                        IsUtf8Locale()};
  ShowResult answer = Explain(input, *subject);
  if (!answer.ok()) return answer.status();
  if (options.json) {
    nlohmann::ordered_json json = NewJson("show", options.file);
    json.update(answer->json);
    json["next"] = answer->page.commands();
    json["lacks"] = (*loaded)->lacks;
    PrintJson(json);
    return kDone;
  }
  AddLacks((*loaded)->lacks, answer->page);
  fmt::print("{}", answer->page.Finish());
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
