// symbols/build_id_index.h
//
// BuildIdIndex: which file below some directories has which build-id, whatever the directories are
// laid out like: an unpacked -dbgsym package, a folder of *.debug files, another machine's system
// tree.
//
// Where several files have one build-id (a stripped library and its debug file) the one that says
// most wins: with DWARF, then with a symbol table.
//
// Bounds: kMaxFiles files, links to directories are not followed. Cost: every file is opened once
// and, where it is an ELF file, its section headers are read.
// Thread safety: const methods from any thread.

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

  // A path; empty where no file has that build-id (raw bytes).
  std::string Find(const std::string& build_id) const;

  size_t size() const { return files_.size(); }
  bool cut() const { return seen_ >= kMaxFiles; }  // there were more files

 private:
  struct File {
    std::string path;
    int says = 0;
  };
  void Add(const std::string& path);

  size_t seen_ = 0;
  absl::flat_hash_map<std::string, File> files_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_BUILD_ID_INDEX_H_
