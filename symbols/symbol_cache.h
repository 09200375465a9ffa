// symbols/symbol_cache.h
//
// SymbolCache: an on-disk cache of resolved names, shared by all processes of a user on this
// machine. For example, 64 ranks look up the same names in the same libraries, and opening a large
// library takes most of the time.
//
// An entry belongs to the *files* from which it came: build-id, size and modification time of the
// module and its debug file. Better debug information means other files and therefore replaces
// earlier results; so does an upgraded library. "No name" is a valid entry too.
//
// Rules
//   C1  A failure costs time, but never causes a wrong name or an error: without an entry, names
//       are looked up in the files. A damaged cache is deleted and recreated by the next process.
//   C2  An entry is used only if its checksum is correct.
//   C3  The directory must belong to this user, be writable by no other user, and be on a local
//       disk, because sqlite's shared memory does not work across machines.
//   C4  It occupies at most max_bytes on disk; the least recently used modules are removed first.
// It is one sqlite database in WAL mode: readers never wait, and a killed writer leaves the last
// commit. Thread safety: one thread at a time; any number of processes.

#ifndef GMT_SYMBOLS_SYMBOL_CACHE_H_
#define GMT_SYMBOLS_SYMBOL_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "symbols/symbolizer.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gmt::symbols {

class SymbolCache {
 public:
  static constexpr uint64_t kMaxBytes = 64u << 20;

  // $GPUMEMTRACE_SYMBOL_CACHE, else $XDG_CACHE_HOME/gpumemtrace/symbols, else
  // ~/.cache/gpumemtrace/symbols. Empty: off, or no directory is known.
  static std::string DefaultDirectory();

  // Creates the directory if it is missing. An error message says why there is no cache.
  static absl::StatusOr<std::unique_ptr<SymbolCache>> Open(const std::string& directory,
                                                           uint64_t max_bytes = kMaxBytes);
  ~SymbolCache();  // writes pending entries
  SymbolCache(const SymbolCache&) = delete;
  SymbolCache& operator=(const SymbolCache&) = delete;

  // Returns the symbols at `address` in `files`, or nothing if there is no entry.
  std::optional<std::vector<ResolvedSymbol>> Find(const std::string& files, uint64_t address);
  // Adds an entry, which is written later together with others.
  void Add(const std::string& files, uint64_t address, const std::vector<ResolvedSymbol>& symbols);
  void Flush();

  // Statistics of this process, for tests and logs.
  uint64_t hits() const { return hits_; }
  uint64_t lost() const { return lost_; }  // entries that could not be written

 private:
  struct Entry {
    int64_t module;
    uint64_t address;
    std::string value;
  };
  // Resets a prepared statement when it goes out of scope.
  class Statement;

  SymbolCache(std::string path, uint64_t max_bytes)
      : path_(std::move(path)), max_bytes_(max_bytes) {}
  bool Prepare();
  bool Execute(const char* sql);
  std::optional<int64_t> ModuleOf(const std::string& files);
  std::optional<int64_t> MakeModule(const std::string& files);
  bool Write();
  bool MakeRoom();
  uint64_t BytesUsed();
  // Returns whether `result` means success. Other results except contention close the database.
  bool IsOk(int result);
  void Close();

  const std::string path_;
  const uint64_t max_bytes_;
  sqlite3* database_ = nullptr;  // null: disabled
  sqlite3_stmt *find_ = nullptr, *find_module_ = nullptr, *add_module_ = nullptr,
               *touch_module_ = nullptr, *add_ = nullptr;
  absl::flat_hash_map<std::string, int64_t> modules_;  // ids of the modules used so far
  std::vector<Entry> waiting_;
  uint64_t hits_ = 0, lost_ = 0;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_SYMBOL_CACHE_H_
