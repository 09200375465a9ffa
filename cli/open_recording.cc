#include "cli/open_recording.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/progress.h"
#include "interop/open_input.h"

namespace gmt::cli {

using answers::LoadProgress;

absl::StatusOr<std::unique_ptr<answers::Recording>> OpenRecording(const std::string& path,
                                                                  answers::ReadOptions options) {
  Progress progress(absl::StrCat("reading ", path));
  uint64_t events = 0;
  const auto listener = [&](const LoadProgress& now) {
    if (now.stage == LoadProgress::kNamingFrames)
      return progress.Stage(absl::StrCat("naming frames of ", path));
    progress.Count(now.events - events);
    events = now.events;
  };
  return answers::LoadRecording(path, listener, std::move(options));
}

absl::StatusOr<std::shared_ptr<format::ByteSource>> OpenGmtFile(const std::string& path) {
  absl::StatusOr<interop::InputFile> file = interop::OpenInputFile(path);
  if (!file.ok()) return file.status();
  if (file->format == interop::InputFile::Format::kRecording) return std::move(file->source);
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is not a .gmt recording. Make one of it first: gpumemtrace import ",
                   path, " -o FILE.gmt"));
}

}  // namespace gmt::cli
