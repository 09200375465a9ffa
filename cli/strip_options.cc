#include "cli/strip_options.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/open_recording.h"
#include "format/recording_copy.h"

namespace gmt::cli {
void StripOptions::AddTo(Command& command) {
  command.Flag("--strip-paths", &paths, "remove private directories from paths");
  command.Flag("--strip-args", &args, "keep only the program name of the command line");
}

absl::Status StripOptions::Copy(const std::string& from, const std::string& to) const {
  const auto recording = OpenGmtFile(from);
  if (!recording.ok()) return recording.status();
  auto sink = format::FileSink(to, format::IfExists::kOverwrite);
  if (!sink.ok()) return sink.status();
  return format::CopyStripped(**recording, from, *std::move(sink), {paths, args, ""});
}

absl::StatusOr<StrippedFiles> StrippedFiles::Make(const StripOptions& options,
                                                  const std::vector<std::string>& files) {
  StrippedFiles stripped;
  stripped.files_ = files;
  if (!options.any()) return stripped;
  std::error_code none;
  std::string folder = std::filesystem::temp_directory_path(none) / "gpumemtrace.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr)
    return absl::UnavailableError(absl::StrCat(folder, ": ", std::strerror(errno)));
  stripped.folder_ = folder;
  for (size_t i = 0; i < files.size(); ++i) {
    // Each copy gets its own folder, so that it keeps its file name.
    const std::filesystem::path place = std::filesystem::path(folder) / std::to_string(i);
    std::filesystem::create_directory(place, none);
    stripped.files_[i] = place / std::filesystem::path(files[i]).filename();
    if (absl::Status status = options.Copy(files[i], stripped.files_[i]); !status.ok())
      return status;
  }
  return stripped;
}

StrippedFiles::StrippedFiles(StrippedFiles&& other) noexcept
    : files_(std::move(other.files_)), folder_(std::exchange(other.folder_, "")) {}

StrippedFiles::~StrippedFiles() {
  std::error_code none;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, none);
}

}  // namespace gmt::cli
