// gpumemtrace frag: shows what a caching allocator holds besides its live blocks, and why.

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "answers/frag/frag_answer.h"
#include "cli/command.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct FragArguments {
  std::string file, at = "peak";
  std::optional<int32_t> device;
  int64_t top = 0;
  bool json = false;
};

absl::StatusOr<int> Frag(const FragArguments& options, const Terminal& terminal) {
  analysis::FragmentationOptions selection;
  auto at = analysis::ParseAt(options.at);
  if (!at.ok()) return UsageError(absl::StrCat("--at: ", at.status().message()));
  if (options.top < 0) return UsageError("--top: expected a number of rows, 1 or more");
  selection.at = *std::move(at);
  selection.device = options.device;
  const auto recording = OpenRecording(options.file, {.text = FormFor(options.json)});
  if (!recording.ok()) return recording.status();
  const auto answer = answers::FragAnswer::Make(**recording, selection);
  if (!answer.ok()) return answer.status();
  const auto top = static_cast<size_t>(options.top);
  fmt::print("{}", options.json ? answer->Json(top) : answer->Text(terminal, top));
  if (options.json) return kDone;
  for (const std::string& lack : (*recording)->lacks()) PrintNote(lack);
  return kDone;
}

}  // namespace

void AddFrag(Program& program) {
  auto options = std::make_shared<FragArguments>();
  Command command =
      program.AddVerb("frag", "Show what an allocator holds besides its live blocks, and why",
                      [options](const Terminal& terminal) { return Frag(*options, terminal); });
  command.Argument("FILE", &options->file, "recording");
  command.Option("--at", &options->at, "WHEN",
                 "peak, end, oom, step:N, event:N, t:SECONDS or snapshot:NAME");
  command.Suggest("--at", {"peak", "end", "oom"});
  command.DeviceOption(&options->device, "only this GPU");
  command.Option("--top", &options->top, "N", "number of shown code lines that pin memory");
  command.Flag("--json", &options->json, "print JSON, with every segment");
}

}  // namespace gmt::cli
