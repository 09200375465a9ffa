#include "symbols/debug_files.h"

#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gmt::symbols {
namespace {

// Adds the paths below each of `dirs`, in another process's file system and in ours.
void AddBelow(const std::string& root, const std::vector<std::string>& dirs,
              const std::string& rest, std::vector<std::string>* paths) {
  for (const std::string& dir : dirs) {
    if (!root.empty()) paths->push_back(absl::StrCat(root, dir, rest));
    paths->push_back(absl::StrCat(dir, rest));
  }
}

std::vector<std::string> Candidates(const std::string& build_id, const ElfFile* file,
                                    const std::string& root,
                                    const std::vector<std::string>& debug_dirs) {
  std::vector<std::string> paths;
  if (build_id.size() >= 2) {
    const std::string hex = absl::BytesToHexString(build_id);
    AddBelow(root, debug_dirs,
             absl::StrCat("/.build-id/", hex.substr(0, 2), "/", hex.substr(2), ".debug"), &paths);
  }
  const std::string link = file == nullptr ? "" : file->DebugLink();
  const size_t slash = file == nullptr ? std::string::npos : file->path().rfind('/');
  if (link.empty() || slash == std::string::npos) return paths;
  const std::string home = file->path().substr(0, slash);
  paths.push_back(absl::StrCat(home, "/", link));
  paths.push_back(absl::StrCat(home, "/.debug/", link));
  const bool below_root = !root.empty() && home.compare(0, root.size(), root) == 0;
  AddBelow(root, debug_dirs, absl::StrCat(home.substr(below_root ? root.size() : 0), "/", link),
           &paths);
  return paths;
}

}  // namespace

std::unique_ptr<ElfFile> FindDebugFile(const std::string& build_id, const ElfFile* file,
                                       const std::string& root,
                                       const std::vector<std::string>& debug_dirs) {
  for (const std::string& path : Candidates(build_id, file, root, debug_dirs)) {
    if (file != nullptr && path == file->path()) continue;
    auto found = ElfFile::Open(path);
    if (found.ok() && (*found)->BuildId() == build_id) return *std::move(found);
  }
  return nullptr;
}

}  // namespace gmt::symbols
