// gpumemtrace diff: shows what holds more or less memory in one recording than in another.

#include "analysis/diff/diff.h"

#include <fmt/format.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/command.h"
#include "cli/diff_text.h"
#include "cli/load_trace.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct DiffArguments {
  std::string base, changed, at, fail_above;
  int64_t device = -1, top = 0;
  bool json = false, markdown = false;
};

absl::StatusOr<analysis::DiffOptions> Selection(const DiffArguments& options) {
  analysis::DiffOptions selection;
  if (options.top < 0) return UsageError("--top: expected a number of rows, 1 or more");
  if (options.json && options.markdown)
    return UsageError("--json and --markdown exclude each other");
  if (options.device >= 0) selection.device = static_cast<int32_t>(options.device);
  if (options.at.empty()) return selection;
  auto at = analysis::ParseAt(options.at);
  if (!at.ok()) return UsageError(absl::StrCat("--at: ", at.status().message()));
  selection.at = *std::move(at);
  return selection;
}

// Replaces the side named in the comparison's error by the file.
absl::Status InFiles(const absl::Status& status, const DiffArguments& options) {
  absl::string_view message = status.message();
  if (absl::ConsumePrefix(&message, "base: ")) {
    return absl::Status(status.code(), absl::StrCat(options.base, ": ", message));
  }
  if (absl::ConsumePrefix(&message, "new: ")) {
    return absl::Status(status.code(), absl::StrCat(options.changed, ": ", message));
  }
  return status;
}

absl::StatusOr<int> RunDiff(const DiffArguments& options, const Terminal& terminal) {
  const auto selection = Selection(options);
  if (!selection.ok()) return selection.status();
  DiffSource source;
  if (!options.fail_above.empty()) {
    const auto limit = ParseLimit(options.fail_above);
    if (!limit.ok()) return limit.status();
    source.limit = *limit;
  }
  const auto base = LoadTrace(options.base);
  if (!base.ok()) return base.status();
  const auto changed = LoadTrace(options.changed);
  if (!changed.ok()) return changed.status();
  source.base_file = options.base;
  source.new_file = options.changed;
  source.base_lacks = (*base)->lacks;
  source.new_lacks = (*changed)->lacks;
  source.new_start_unix_ns = (*changed)->trace.start_unix_ns;

  const analysis::Examination before((*base)->trace, (*base)->definitions);
  const analysis::Examination after((*changed)->trace, (*changed)->definitions);
  const auto comparison = analysis::Compare(before, analysis::Categorize(before), after,
                                            analysis::Categorize(after), *selection);
  if (!comparison.ok()) return InFiles(comparison.status(), options);
  const auto top = static_cast<size_t>(options.top);
  fmt::print("{}", options.json       ? DiffJson(*comparison, source)
                   : options.markdown ? DiffMarkdown(*comparison, source, top)
                                      : DiffText(*comparison, source, top, terminal));
  return HasFailed(*comparison, source) ? kGateFailed : kDone;
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
  command.Option("--device", &options->device, "N", "only this GPU");
  command.Option("--top", &options->top, "N", "rows of the table");
  command.Option("--fail-above", &options->fail_above, "LIMIT",
                 "exit with code 3 if a GPU grew by more than this many bytes or percent");
  command.Flag("--markdown", &options->markdown, "print a comment for a pull request");
  command.Flag("--json", &options->json, "print JSON, with every frame");
}

}  // namespace gmt::cli
