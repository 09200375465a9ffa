// gpumemtrace report: shows what holds the memory.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analysis/categories/category_rules.h"
#include "analysis/text.h"
#include "answers/diff/limit.h"
#include "answers/diff/slope_answer.h"
#include "answers/report/report_answer.h"
#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"
#include "cli/window_options.h"

namespace gmt::cli {
namespace {

struct ReportArguments {
  std::string file, other, at = "peak", heap, by = "stack", fail_above, categories;
  std::optional<int32_t> device;
  int64_t top = 0;
  bool json = false, slope = false;
  WindowOptions window;
  FrameOptions frames;
};

absl::StatusOr<analysis::ReportOptions> Selection(const ReportArguments& options) {
  analysis::ReportOptions selection;
  auto at = analysis::ParseAt(options.at);
  if (!at.ok()) return UsageError(absl::StrCat("--at: ", at.status().message()));
  auto by = analysis::ParseGroupBy(options.by);
  if (!by.ok()) return UsageError(absl::StrCat("--by: ", by.status().message()));
  if (options.top < 0) return UsageError("--top: expected a number of rows, 1 or more");
  const auto window = options.window.Window();
  if (!window.ok()) return window.status();
  selection.at = *std::move(at);
  selection.by = *by;
  selection.heap = options.heap;
  selection.device = options.device;
  selection.window = *window;
  return selection;
}

// Returns kGateFailed if the peak of a device is above the limit, and prints why on stderr.
absl::StatusOr<int> Gate(const analysis::Report& report, const answers::Limit& limit) {
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

absl::StatusOr<analysis::CategoryRules> CategoryRulesOf(const ReportArguments& options) {
  if (options.categories.empty()) return analysis::CategoryRules::BuiltIn();
  return analysis::CategoryRules::WithFile(options.categories);
}

// Returns the range that the report is about; nothing if everything has to be read. A step or a
// snapshot is searched for, JSON contains sums of the whole recording, and a limit needs its peak.
std::optional<format::TimeRange> RangeOf(const ReportArguments& options) {
  if (options.slope || options.json || !options.fail_above.empty()) return std::nullopt;
  if (!options.window.is_given()) {
    if (options.at == "end") return answers::kTheEnd;
    const bool is_about_peak = options.at == "peak" && options.heap.empty();
    return is_about_peak ? std::optional(answers::kThePeak) : std::nullopt;
  }
  const auto window = options.window.Window();
  if (!window.ok() || options.at != "peak") return std::nullopt;
  return format::TimeRange{window->from_ns, window->to_ns};
}

// `device`: whose peak the report is about, if not that of the device with the highest one.
absl::StatusOr<std::unique_ptr<answers::Recording>> Open(const std::string& file,
                                                         const ReportArguments& options,
                                                         std::optional<int32_t> device = {}) {
  auto frame_rules = options.frames.Rules();
  if (!frame_rules.ok()) return frame_rules.status();
  auto category_rules = CategoryRulesOf(options);
  if (!category_rules.ok()) return category_rules.status();
  return OpenRecording(file, {*std::move(frame_rules), *std::move(category_rules),
                              FormFor(options.json), RangeOf(options), device});
}

// Makes the report. If the devices have their peaks in different parts of a long recording, these
// are read one after the other, into `recordings`.
absl::StatusOr<answers::ReportAnswer> Make(
    const ReportArguments& options, analysis::ReportOptions selection,
    std::vector<std::unique_ptr<answers::Recording>>* recordings) {
  auto recording = Open(options.file, options, selection.device);
  if (!recording.ok()) return recording.status();
  recordings->push_back(*std::move(recording));
  if (!selection.device) selection.without = recordings->front()->peaks_elsewhere();
  auto answer = answers::ReportAnswer::Make(*recordings->front(), selection);
  for (const int32_t device : std::exchange(selection.without, {})) {
    if (!answer.ok()) return answer;
    recording = Open(options.file, options, device);
    if (!recording.ok()) return recording.status();
    recordings->push_back(*std::move(recording));
    selection.device = device;
    const auto more = answers::ReportAnswer::Make(*recordings->back(), selection);
    if (!more.ok()) return more.status();
    answer->Add(*more);
  }
  return answer;
}

absl::StatusOr<int> RunSlope(const ReportArguments& options,
                             const analysis::ReportOptions& selection, const Terminal& terminal) {
  const ReportArguments defaults;
  if (options.other.empty()) return UsageError("--slope: expected two recordings");
  if (options.at != defaults.at || options.by != defaults.by || !options.heap.empty() ||
      !options.fail_above.empty() || options.window.is_given()) {
    return UsageError(
        "--slope compares the same step of both recordings, by stack: of the options that select, "
        "it takes --device");
  }
  const auto first = Open(options.file, options);
  if (!first.ok()) return first.status();
  const auto second = Open(options.other, options);
  if (!second.ok()) return second.status();
  const auto answer = answers::SlopeAnswer::Make(**first, **second, {{}, selection.device});
  if (!answer.ok()) return answer.status();
  fmt::print("{}", options.json ? answer->Json()
                                : answer->Text(terminal, static_cast<size_t>(options.top)));
  return kDone;
}

absl::StatusOr<int> RunReport(const ReportArguments& options, const Terminal& terminal) {
  auto selection = Selection(options);
  if (!selection.ok()) return selection.status();
  if (options.slope) return RunSlope(options, *selection, terminal);
  if (!options.other.empty()) {
    return UsageError("a report is of one recording. --slope or gpumemtrace diff compare two");
  }
  std::optional<answers::Limit> limit;
  if (!options.fail_above.empty()) {
    const auto parsed = answers::ParseLimit(options.fail_above);
    if (!parsed.ok()) return UsageError(parsed.status().message());
    limit = *parsed;
  }
  std::vector<std::unique_ptr<answers::Recording>> recordings;
  const auto answer = Make(options, *selection, &recordings);
  if (!answer.ok()) return answer.status();
  const auto top = static_cast<size_t>(options.top);
  fmt::print(
      "{}", options.json ? answer->Json(top) : answer->Text(terminal, top, options.frames.Shown()));
  return limit ? Gate(answer->report(), *limit) : absl::StatusOr<int>(kDone);
}

}  // namespace

void AddReport(Program& program) {
  auto options = std::make_shared<ReportArguments>();
  Command command = program.AddVerb(
      "report", "Show what holds the memory, by stack",
      [options](const Terminal& terminal) { return RunReport(*options, terminal); });
  command.Argument("FILE", &options->file, "recording");
  command.OptionalArgument("FILE2", &options->other, "second recording, for --slope");
  command.Option("--at", &options->at, "WHEN",
                 "peak, end, oom, step:N, event:N, t:SECONDS or snapshot:NAME");
  command.Suggest("--at", {"peak", "end", "oom"});
  command.Option(
      "--by", &options->by, "WHAT",
      "stack, function, file, category, layer, dtype, node, layer-node, library, heap, thread, "
      "stream or size");
  command.Suggest("--by", analysis::GroupByWords());
  command.DeviceOption(&options->device, "only this GPU");
  command.Option("--heap", &options->heap, "NAME", "only this heap: driver, host, pytorch, ...");
  command.Suggest("--heap", {"driver", "host", "pytorch", "nvtx"});
  command.Option("--top", &options->top, "N", "rows per device");
  options->window.AddTo(command, "look for the peak after this time",
                        "look for the peak before this time");
  command.Option("--fail-above", &options->fail_above, "LIMIT",
                 "exit with code 3 if the peak is above this many bytes or percent");
  command.Flag("--slope", &options->slope,
               "how memory grows with the inputs, from two runs of different size");
  command.Option("--categories", &options->categories, "FILE",
                 "your own rules for memory categories (docs/categories.md)");
  options->frames.AddTo(command);
  command.Flag("--json", &options->json, "print JSON, with every frame");
}

}  // namespace gmt::cli
