// gpumemtrace ledger: shows what is in use according to the driver, and by what.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "answers/ledger/ledger_answer.h"
#include "cli/command.h"
#include "cli/open_recording.h"
#include "cli/record/collect_session.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct LedgerArguments {
  std::string file, at;
  std::optional<int32_t> device;
  int64_t top = 0;
  bool json = false;
};

bool IsPid(const std::string& name) {
  std::error_code error;
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         !std::filesystem::exists(name, error);
}

// Returns the path of the recording of a running process.
absl::StatusOr<std::string> RecordingOf(const std::string& pid) {
  const auto session = FindSession(pid);
  if (!session.ok()) return session.status();
  if (session->output.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", pid,
                     " has a session but no recording yet. Write one with: gpumemtrace "
                     "collect ",
                     session->path));
  }
  return session->output;
}

absl::StatusOr<analysis::LedgerOptions> Selection(const LedgerArguments& options, bool is_live) {
  analysis::LedgerOptions selection;
  if (options.top < 0) return UsageError("--top: expected a number of rows, 1 or more");
  auto at = analysis::ParseAt(!options.at.empty() ? options.at : is_live ? "end" : "peak");
  if (!at.ok()) return UsageError(absl::StrCat("--at: ", at.status().message()));
  selection.at = *std::move(at);
  selection.device = options.device;
  return selection;
}

absl::StatusOr<int> RunLedger(const LedgerArguments& options, const Terminal& terminal) {
  const bool is_live = IsPid(options.file);
  const auto selection = Selection(options, is_live);
  if (!selection.ok()) return selection.status();
  const absl::StatusOr<std::string> file = is_live ? RecordingOf(options.file) : options.file;
  if (!file.ok()) return file.status();
  const auto recording = OpenRecording(*file, {.text = FormFor(options.json)});
  if (!recording.ok()) return recording.status();
  const auto answer = answers::LedgerAnswer::Make(**recording, *selection, is_live);
  if (!answer.ok()) return answer.status();
  fmt::print("{}", options.json ? answer->Json()
                                : answer->Text(terminal, static_cast<size_t>(options.top)));
  return kDone;
}

}  // namespace

void AddLedger(Program& program) {
  auto options = std::make_shared<LedgerArguments>();
  Command command = program.AddVerb(
      "ledger", "Show what is in use according to the driver, and by what",
      [options](const Terminal& terminal) { return RunLedger(*options, terminal); });
  command.Argument("FILE", &options->file,
                   "recording, or the process ID of a process being "
                   "recorded");
  command.Option("--at", &options->at, "WHEN",
                 "peak, end, oom, step:N, event:N, t:SECONDS or snapshot:NAME");
  command.Suggest("--at", {"peak", "end", "oom"});
  command.DeviceOption(&options->device, "only this GPU");
  command.Option("--top", &options->top, "N", "rows for memory outside the allocator");
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
