#include "symbols/debug_files.h"

#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gmt::symbols {
namespace {

std::vector<std::string> Candidates(const ElfFile& file, const std::string& build_id,
                                    const std::vector<std::string>& debug_dirs) {
  std::vector<std::string> paths;
  if (build_id.size() >= 2) {
    const std::string hex = absl::BytesToHexString(build_id);
    for (const std::string& dir : debug_dirs) {
      paths.push_back(
          absl::StrCat(dir, "/.build-id/", hex.substr(0, 2), "/", hex.substr(2), ".debug"));
    }
  }
  const std::string link = file.DebugLink();
  const size_t slash = file.path().rfind('/');
  if (link.empty() || slash == std::string::npos) return paths;
  const std::string home = file.path().substr(0, slash);
  paths.push_back(absl::StrCat(home, "/", link));
  paths.push_back(absl::StrCat(home, "/.debug/", link));
  for (const std::string& dir : debug_dirs) paths.push_back(absl::StrCat(dir, home, "/", link));
  return paths;
}

}  // namespace

std::unique_ptr<ElfFile> FindDebugFile(const ElfFile& file,
                                       const std::vector<std::string>& debug_dirs) {
  const std::string build_id = file.BuildId();
  for (const std::string& path : Candidates(file, build_id, debug_dirs)) {
    if (path == file.path()) continue;
    auto found = ElfFile::Open(path);
    if (found.ok() && (*found)->BuildId() == build_id) return *std::move(found);
  }
  return nullptr;
}

}  // namespace gmt::symbols
