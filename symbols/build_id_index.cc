#include "symbols/build_id_index.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "symbols/elf_file.h"

namespace gmt::symbols {
namespace {

namespace fs = std::filesystem;

int InformationIn(const ElfFile& file) {
  if (file.HasSection(".debug_info") || file.HasSection(".zdebug_info")) return 2;
  return file.HasSection(".symtab") ? 1 : 0;
}

}  // namespace

BuildIdIndex::BuildIdIndex(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    std::error_code error;
    fs::recursive_directory_iterator it(directory, fs::directory_options::skip_permission_denied,
                                        error);
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (cut()) return;
      std::error_code ignored;
      if (!it->is_regular_file(ignored)) continue;
      ++seen_;
      Add(it->path().string());
    }
  }
}

void BuildIdIndex::Add(const std::string& path) {
  const auto file = ElfFile::Open(path);
  if (!file.ok()) return;
  const std::string build_id = (*file)->BuildId();
  if (build_id.empty()) return;
  const int information = InformationIn(**file);
  const auto [known, is_new] = files_.try_emplace(build_id, File{path, information});
  if (!is_new && information > known->second.information) known->second = {path, information};
}

std::string BuildIdIndex::Find(const std::string& build_id) const {
  const auto found = files_.find(build_id);
  return found == files_.end() ? "" : found->second.path;
}

}  // namespace gmt::symbols
