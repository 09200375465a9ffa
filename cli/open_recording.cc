#include "cli/open_recording.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/progress.h"

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

}  // namespace gmt::cli
