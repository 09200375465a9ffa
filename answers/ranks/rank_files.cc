#include "answers/ranks/rank_files.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "answers/ranks/digest_file.h"
#include "format/parts.h"

namespace gmt::answers {
namespace {

absl::StatusOr<std::set<std::string>> FilesInFolder(const std::string& folder) {
  std::set<std::string> recordings, digests;
  std::error_code error;
  for (auto entry = std::filesystem::recursive_directory_iterator(folder, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (absl::EndsWith(path, ".gmt")) recordings.insert(path);
    if (absl::EndsWith(path, DigestPathOf(".gmt"))) digests.insert(path);
  }
  if (error) return absl::UnknownError(absl::StrCat(folder, ": ", error.message()));
  std::erase_if(recordings, [&](const std::string& path) {
    const auto newest = format::RecordingOfPart(path);
    return newest && recordings.contains(*newest);
  });
  for (const std::string& digest : digests) {
    if (!recordings.contains(*RecordingOfDigest(digest))) recordings.insert(digest);
  }
  if (recordings.empty())
    return absl::NotFoundError(absl::StrCat(folder, ": no recording (*.gmt) in this directory"));
  return recordings;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesOfRanks(const std::vector<std::string>& places) {
  std::vector<std::string> files;
  std::set<std::string> seen;
  const auto add = [&](const std::string& file) {
    if (seen.insert(file).second) files.push_back(file);
  };
  for (const std::string& place : places) {
    std::error_code error;
    if (!std::filesystem::is_directory(place, error)) {
      const auto recording = RecordingOfDigest(place);
      add(recording && std::filesystem::exists(*recording, error) ? *recording : place);
      continue;
    }
    const auto in_folder = FilesInFolder(place);
    if (!in_folder.ok()) return in_folder.status();
    for (const std::string& file : *in_folder) add(file);
  }
  return files;
}

}  // namespace gmt::answers
