// The formats that show a whole history: perfetto, chrome and heaptrack.

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/export/export_file.h"
#include "cli/export/formats.h"
#include "cli/open_recording.h"
#include "cli/terminal.h"
#include "interop/heaptrack/heaptrack_file.h"
#include "interop/timeline/chrome_trace.h"
#include "interop/timeline/perfetto_trace.h"
#include "interop/timeline/timeline.h"

namespace gmt::cli {
namespace {

using TimelineWriter = void (*)(const analysis::Examination& examination,
                                const interop::Timeline& timeline, std::ostream& out);

absl::StatusOr<int> ExportTimeline(const ExportArguments& arguments, answers::TextForm form,
                                   TimelineWriter write, const char* to_view) {
  auto file = ExportFile::Create(arguments);
  if (!file.ok()) return file.status();
  const auto loaded = OpenRecording(arguments.file(), {.text = form});
  if (!loaded.ok()) return loaded.status();
  const answers::Recording& recording = **loaded;
  const interop::Timeline timeline =
      interop::MakeTimeline(recording.examination(), recording.categories());
  write(recording.examination(), timeline, file->stream());
  if (absl::Status status = file->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: to view: {}", arguments.output, to_view));
  if (timeline.is_thinned) {
    PrintNote(fmt::format("curves have up to {} points: peaks are exact, details between are not",
                          interop::kMaxPointsOfCounter));
  }
  PrintLacks(recording);
  return kDone;
}

}  // namespace

absl::StatusOr<int> ExportPerfetto(const ExportArguments& arguments) {
  return ExportTimeline(arguments, answers::TextForm::kPrintable, interop::WritePerfettoTrace,
                        "open it in ui.perfetto.dev, which does not upload it");
}

absl::StatusOr<int> ExportChrome(const ExportArguments& arguments) {
  return ExportTimeline(arguments, answers::TextForm::kAsRecorded, interop::WriteChromeTrace,
                        "open it in ui.perfetto.dev, alone or with a trace of torch.profiler");
}

absl::StatusOr<int> ExportHeaptrack(const ExportArguments& arguments) {
  auto rules = arguments.frames.Rules();
  if (!rules.ok()) return rules.status();
  auto file = ExportFile::Create(arguments);
  if (!file.ok()) return file.status();
  const auto loaded = OpenRecording(arguments.file(), {.frames = *std::move(rules)});
  if (!loaded.ok()) return loaded.status();
  const answers::Recording& recording = **loaded;
  if (absl::Status written = interop::WriteHeaptrackFile(recording.examination(), arguments.device,
                                                         arguments.heap, file->stream());
      !written.ok()) {
    return recording.InFile(written);
  }
  if (absl::Status status = file->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: to view: heaptrack_gui {} or heaptrack_print {}", arguments.output,
                        arguments.output, arguments.output));
  PrintLacks(recording);
  return kDone;
}

}  // namespace gmt::cli
