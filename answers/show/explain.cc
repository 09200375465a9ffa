#include "answers/show/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/leaks/leaks.h"
#include "analysis/stacks/source_line.h"
#include "answers/json.h"
#include "answers/show/show.h"

namespace gmt::answers {
namespace {

using analysis::Subject;

constexpr size_t kListRows = 5;
constexpr size_t kShowLacksShown = 2;

ShowResult ExplainKind(const ShowInput& input, const Subject& subject) {
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

// Finding suspects walks over all cycles; only subjects that can be part of one need them.
bool NeedsLeaks(const Subject& subject) {
  return subject.kind == Subject::kLeak || subject.kind == Subject::kStack ||
         subject.kind == Subject::kBefore;
}

void AddLacks(const std::vector<std::string>& lacks, ShowPage& page) {
  if (lacks.empty()) return;
  page.Part("Not known");
  for (size_t i = 0; i < std::min(lacks.size(), kShowLacksShown); ++i) page.Line("  " + lacks[i]);
  if (lacks.size() > kShowLacksShown) {
    page.Line(fmt::format("  and {} more: gpumemtrace report", lacks.size() - kShowLacksShown));
  }
}

}  // namespace

absl::StatusOr<Answer> Explain(const Recording& recording, const Subject& subject,
                               const ShowOptions& options, const Terminal& terminal) {
  const analysis::LeakReport leaks =
      NeedsLeaks(subject) ? analysis::FindLeaks(recording.examination()) : analysis::LeakReport{};
  analysis::SourceLines sources(recording.trace().start_unix_ns);
  const ShowInput input{recording.examination(),
                        recording.categories(),
                        leaks,
                        recording.path(),
                        options.shown,
                        options.top == 0 ? kListRows : options.top,
                        terminal,
                        sources,
                        IsUtf8Locale()};
  ShowResult explained = ExplainKind(input, subject);
  if (!explained.ok()) return explained.status();
  nlohmann::ordered_json json = NewJson("show", recording.path());
  json.update(explained->json);
  json["next"] = explained->page.commands();
  json["lacks"] = recording.lacks();
  AddLacks(recording.lacks(), explained->page);
  return Answer{explained->page.Finish(), JsonText(json)};
}

}  // namespace gmt::answers
