// The formats that show one moment by stack: pprof, folded and speedscope.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/examination/instant.h"
#include "analysis/text.h"
#include "cli/command.h"
#include "cli/export/export_file.h"
#include "cli/export/formats.h"
#include "cli/open_recording.h"
#include "interop/pprof/recording_profile.h"
#include "interop/profile/folded_stacks.h"
#include "interop/profile/speedscope.h"

namespace gmt::cli {
namespace {

struct WrittenProfile {
  std::string content, note;
  bool lacks_allocations_before = false;
};

// Opens the recording and writes what `make` returns for it and the selected moment.
template <typename Make>
absl::StatusOr<int> ExportProfile(const ExportArguments& arguments, answers::TextForm form,
                                  const Make& make) {
  auto at = analysis::ParseAt(arguments.at.empty() ? "peak" : arguments.at);
  if (!at.ok()) return UsageError(absl::StrCat("--at: ", at.status().message()));
  auto rules = arguments.frames.Rules();
  if (!rules.ok()) return rules.status();
  auto file = ExportFile::Create(arguments);
  if (!file.ok()) return file.status();
  const auto loaded = OpenRecording(arguments.file(), {.frames = *std::move(rules), .text = form});
  if (!loaded.ok()) return loaded.status();
  const answers::Recording& recording = **loaded;
  const absl::StatusOr<WrittenProfile> written =
      make(recording.examination(),
           interop::ProfileSelection{*std::move(at), arguments.device, arguments.heap});
  if (!written.ok()) return recording.InFile(written.status());
  file->stream() << written->content;
  if (absl::Status status = file->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: {}", arguments.output, written->note));
  if (written->lacks_allocations_before) {
    PrintNote(fmt::format("{}: what was allocated covers only the kept history", arguments.output));
  }
  PrintLacks(recording);
  return kDone;
}

}  // namespace

absl::StatusOr<int> ExportPprof(const ExportArguments& arguments) {
  return ExportProfile(
      arguments, answers::TextForm::kPrintable,
      [&](const auto& examination, const auto& selection) -> absl::StatusOr<WrittenProfile> {
        auto profile = interop::MakeProfile(examination, selection);
        if (!profile.ok()) return profile.status();
        std::string note = fmt::format("{}; to view: go tool pprof -top -cum {}",
                                       Plural(profile->samples, "stack"), arguments.output);
        return WrittenProfile{std::move(profile->gzipped), std::move(note),
                              profile->lacks_allocations_before};
      });
}

absl::StatusOr<int> ExportFolded(const ExportArguments& arguments) {
  return ExportProfile(
      arguments, answers::TextForm::kPrintable,
      [&](const auto& examination, const auto& selection) -> absl::StatusOr<WrittenProfile> {
        const auto profile = interop::MakeStackProfile(examination, selection);
        if (!profile.ok()) return profile.status();
        return WrittenProfile{
            interop::FoldedStacks(examination, *profile),
            fmt::format("{}; to view: flamegraph.pl --countname bytes {}",
                        Plural(profile->samples.size(), "stack"), arguments.output)};
      });
}

absl::StatusOr<int> ExportSpeedscope(const ExportArguments& arguments) {
  return ExportProfile(
      arguments, answers::TextForm::kAsRecorded,
      [&](const auto& examination, const auto& selection) -> absl::StatusOr<WrittenProfile> {
        const auto profile = interop::MakeStackProfile(examination, selection);
        if (!profile.ok()) return profile.status();
        const std::string name = std::filesystem::path(arguments.file()).filename().string();
        std::string note =
            fmt::format("{}; to view: open it in www.speedscope.app, which does not upload it",
                        Plural(profile->samples.size(), "stack"));
        return WrittenProfile{interop::SpeedscopeJson(examination, *profile, name), std::move(note),
                              profile->lacks_allocations_before};
      });
}

}  // namespace gmt::cli
