// symbols/build_id_index.h
//
// BuildIdIndex: maps build-ids to files below given directories. The layout of the directories
// does not matter: an unpacked -dbgsym package, a directory of *.debug files, another machine's
// file system.
//
// If several files have the same build-id (a stripped library and its debug file), the one with the
// most information wins: with DWARF, then with a symbol table.
//
// Limits: kMaxFiles files; links to directories are not followed. Cost: every file is opened once,
// and the section headers of ELF files are read. Thread safety: const methods may be called from
// any thread.

#ifndef GMT_SYMBOLS_BUILD_ID_INDEX_H_
#define GMT_SYMBOLS_BUILD_ID_INDEX_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gmt::symbols {

class BuildIdIndex {
 public:
  static constexpr size_t kMaxFiles = 200'000;

  explicit BuildIdIndex(const std::vector<std::string>& directories);

  // Returns the path of the file with this build-id (raw bytes), or "" if there is none.
  std::string Find(const std::string& build_id) const;

  size_t size() const { return files_.size(); }
  bool cut() const { return seen_ >= kMaxFiles; }  // there are more files

 private:
  struct File {
    std::string path;
    int information = 0;
  };
  void Add(const std::string& path);

  size_t seen_ = 0;
  absl::flat_hash_map<std::string, File> files_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_BUILD_ID_INDEX_H_
