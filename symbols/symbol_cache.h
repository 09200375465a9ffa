// symbols/symbol_cache.h
//
// SymbolCache: names that were looked up before, on disk, shared by all processes of a user on this
// machine. Sixty-four ranks ask for the same names of the same libraries, and opening a large one
// takes most of the time.
//
// An entry belongs to the *files* that it came from: build-id, size and time of change of the
// module and of its debug file. Better debug information is therefore other files, and replaces
// what was known without it; an upgraded library is, too. "No name" is an entry like any other.
//
// Rules
//   C1  A failure costs time, never a name and never an error: whoever finds no entry looks the
//       files up. A damaged cache is removed and begins anew with the next process.
//   C2  An entry is believed only if its checksum is right.
//   C3  The directory must belong to this user, be writable by nobody else, and lie on a local disk:
//       sqlite's shared memory does not work between machines.
//   C4  At most max_bytes on disk; the modules that were not used for longest go first.
//
// One sqlite database in WAL mode: readers never wait, a killed writer leaves the last commit.
// Thread safety: one thread at a time; any number of processes.

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
  // ~/.cache/gpumemtrace/symbols. Empty: off, or nowhere to be.
  static std::string DefaultDirectory();

  // Makes the directory where it is not there. The message of an error says why there is no cache.
  static absl::StatusOr<std::unique_ptr<SymbolCache>> Open(const std::string& directory,
                                                           uint64_t max_bytes = kMaxBytes);
  ~SymbolCache();  // writes what was added
  SymbolCache(const SymbolCache&) = delete;
  SymbolCache& operator=(const SymbolCache&) = delete;

  // What was found at `address` in `files`; nothing where nobody looked.
  std::optional<std::vector<ResolvedSymbol>> Find(const std::string& files, uint64_t address);
  // Is written with others, later.
  void Add(const std::string& files, uint64_t address, const std::vector<ResolvedSymbol>& symbols);
  void Flush();

  // Of this process, for tests and logs.
  uint64_t hits() const { return hits_; }
  uint64_t lost() const { return lost_; }  // entries that could not be written

 private:
  struct Entry {
    int64_t module;
    uint64_t address;
    std::string value;
  };
  // A prepared statement that is reset when it goes out of scope.
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
  // True where `result` means that the database works; what it is not closes it.
  bool Worked(int result);
  void Close();

  const std::string path_;
  const uint64_t max_bytes_;
  sqlite3* database_ = nullptr;  // null: given up
  sqlite3_stmt *find_ = nullptr, *find_module_ = nullptr, *add_module_ = nullptr,
               *touch_module_ = nullptr, *add_ = nullptr;
  absl::flat_hash_map<std::string, int64_t> modules_;  // ids of those used so far
  std::vector<Entry> waiting_;
  uint64_t hits_ = 0, lost_ = 0;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_SYMBOL_CACHE_H_
