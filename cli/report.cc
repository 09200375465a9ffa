// gpumemtrace report: shows what holds the memory.

#include "cli/report.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analysis/categories/category_rules.h"
#include "analysis/report.h"
#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/limit.h"
#include "cli/load_trace.h"
#include "cli/report_text.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

constexpr int64_t kDefaultTop = 10;

struct ReportArguments {
  std::string file, at = "peak", heap, by = "stack", fail_above, categories;
  int64_t device = -1, top = 0;
  double from = -INFINITY, to = INFINITY;  // seconds
  bool json = false;
  FrameOptions frames;
};

int64_t Nanoseconds(double seconds) {
  if (seconds <= -9e9) return INT64_MIN;
  if (seconds >= 9e9) return INT64_MAX;
  return std::llround(seconds * 1e9);
}

absl::StatusOr<analysis::ReportOptions> Selection(const ReportArguments& options) {
  analysis::ReportOptions selection;
  auto at = analysis::ParseAt(options.at);
  if (!at.ok()) return UsageError(absl::StrCat("--at: ", at.status().message()));
  auto by = analysis::ParseGroupBy(options.by);
  if (!by.ok()) return UsageError(absl::StrCat("--by: ", by.status().message()));
  if (options.top < 0) return UsageError("--top: expected a number of rows, 1 or more");
  if (options.from > options.to) return UsageError("--from is later than --to");
  selection.at = *std::move(at);
  selection.by = *by;
  selection.heap = options.heap;
  if (options.device >= 0) selection.device = static_cast<int32_t>(options.device);
  selection.window = {Nanoseconds(options.from), Nanoseconds(options.to)};
  return selection;
}

// Returns kGateFailed if the peak of a device is above the limit, and prints why on stderr.
absl::StatusOr<int> Gate(const analysis::Report& report, const Limit& limit) {
  int code = kDone;
  for (const analysis::ReportDevice& device : report.devices) {
    if (device.index == analysis::kHostDevice && !limit.bytes) continue;
    if (!limit.bytes && !device.total_bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("--fail-above: the recording does not say how much memory GPU ",
                       device.index, " has. Give a number of bytes"));
    }
    const double allowed = limit.bytes
                               ? static_cast<double>(*limit.bytes)
                               : static_cast<double>(*device.total_bytes) * limit.percent / 100;
    if (static_cast<double>(device.peak_bytes) <= allowed) continue;
    const std::string where =
        device.index == analysis::kHostDevice ? "the host" : fmt::format("GPU {}", device.index);
    PrintNote(fmt::format("peak {} on {} is above the limit of {}", Bytes(device.peak_bytes), where,
                          Bytes(static_cast<uint64_t>(allowed))));
    code = kGateFailed;
  }
  return code;
}

absl::Status InFile(const absl::Status& status, const std::string& file) {
  return absl::Status(status.code(), absl::StrCat(file, ": ", status.message()));
}

absl::StatusOr<analysis::CategoryRules> CategoryRulesOf(const ReportArguments& options) {
  if (options.categories.empty()) return analysis::CategoryRules::BuiltIn();
  return analysis::CategoryRules::WithFile(options.categories);
}

// Stores the report in *text.
absl::StatusOr<int> RunReport(const ReportArguments& options, const Terminal& terminal, std::string* text) {
  auto selection = Selection(options);
  if (!selection.ok()) return selection.status();
  const auto rules = options.frames.Rules();
  if (!rules.ok()) return rules.status();
  const auto category_rules = CategoryRulesOf(options);
  if (!category_rules.ok()) return category_rules.status();
  Limit limit;
  if (!options.fail_above.empty()) {
    auto parsed = ParseLimit(options.fail_above);
    if (!parsed.ok()) return parsed.status();
    limit = *parsed;
  }
  auto loaded = LoadTrace(options.file);
  if (!loaded.ok()) return loaded.status();
  const analysis::Examination examination((*loaded)->trace, (*loaded)->definitions, *rules);
  const auto report = analysis::MakeReport(
      examination, analysis::Categorize(examination, *category_rules), *selection);
  if (!report.ok()) return InFile(report.status(), options.file);
  const auto top = static_cast<size_t>(options.top);
  std::vector<std::string> lacks =
      IsByCode(report->by) ? WithoutBeforeAttach((*loaded)->lacks) : (*loaded)->lacks;
  lacks.insert(lacks.end(), (*loaded)->unnamed.begin(), (*loaded)->unnamed.end());
  *text = options.json
              ? ReportJson(*report, options.file, lacks, top == 0 ? report->rows.size() : top)
              : ReportText(*report, lacks, top == 0 ? kDefaultTop : top,
                           options.frames.raw ? FramesShown::kRaw : FramesShown::kFolded, terminal);
  return options.fail_above.empty() ? absl::StatusOr<int>(kDone) : Gate(*report, limit);
}

}  // namespace

absl::StatusOr<std::string> DefaultReport(const std::string& path, const Terminal& terminal) {
  ReportArguments options;
  options.file = path;
  std::string text;
  if (auto code = RunReport(options, terminal, &text); !code.ok()) return code.status();
  return text;
}

void AddReport(Program& program) {
  auto options = std::make_shared<ReportArguments>();
  Command command = program.AddVerb(
      "report", "Show what holds the memory, by stack", [options](const Terminal& terminal) {
        std::string text;
        absl::StatusOr<int> code = RunReport(*options, terminal, &text);
        fmt::print("{}", text);
        return code;
      });
  command.Argument("FILE", &options->file, "recording");
  command.Option("--at", &options->at, "WHEN",
                 "peak, end, oom, step:N, event:N, t:SECONDS or snapshot:NAME");
  command.Option(
      "--by", &options->by, "WHAT",
      "stack, function, file, category, layer, dtype, node, library, heap, thread, stream "
      "or size");
  command.Option("--device", &options->device, "N", "only this GPU");
  command.Option("--heap", &options->heap, "NAME", "only this heap: driver, host, pytorch, ...");
  command.Option("--top", &options->top, "N", "rows per device");
  command.Option("--from", &options->from, "SECONDS", "look for the peak after this time");
  command.Option("--to", &options->to, "SECONDS", "look for the peak before this time");
  command.Option("--fail-above", &options->fail_above, "LIMIT",
                 "exit with code 3 if the peak is above this many bytes or percent");
  command.Option("--categories", &options->categories, "FILE",
                 "your own rules for memory categories (docs/categories.md)");
  options->frames.AddTo(command);
  command.Flag("--json", &options->json, "print JSON, with every frame");
}

}  // namespace gmt::cli
