// symbols/symbolizer.h
//
// Symbolizer: resolves an address in a module to functions, inlined ones first, with file and line.
//
// Rules
//   S1  A file is used only if it is still the recorded one (same build-id). If it was rebuilt,
//       replaced or upgraded since then, it yields no names; the report shows module + offset.
//   S2  Names are never guessed: see symbols/symbol_table.h.
//   S3  Lines and inlined functions come from DWARF in the file or its separate debug file. Without
//       DWARF the result is one function and no line.
//
// Example
//   Symbolizer symbolizer({});
//   for (const ResolvedSymbol& s :
//        symbolizer.Resolve({path, build_id}, address, AddressKind::kReturn)) ...
//
// Cost: a module is opened when its first address is resolved, and its tables are read at the first
// address that is not in the cache. It stays open (mapped, not read) until max_open_modules other
// modules were used more recently. symbols_benchmark measures time and memory on large libraries.
// Thread safety: one thread at a time.

#ifndef GMT_SYMBOLS_SYMBOLIZER_H_
#define GMT_SYMBOLS_SYMBOLIZER_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gmt::symbols {

// A module as it was recorded.
struct ModuleKey {
  std::string path;      // as in /proc/PID/maps: may end in " (deleted)", may be "[vdso]"
  std::string build_id;  // raw bytes; empty: the module had none

  bool operator==(const ModuleKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ModuleKey& k) {
    return H::combine(std::move(h), k.path, k.build_id);
  }
};

enum class AddressKind {
  kExact,   // of the instruction itself
  kReturn,  // of the instruction after a call; the call itself is meant
};

struct ResolvedSymbol {
  std::string function;  // demangled; empty if only the line is known
  std::string file;      // empty: unknown
  int line = 0;          // 0: unknown

  bool operator==(const ResolvedSymbol&) const = default;
};

enum class ModuleState {
  kUsable,
  kMissing,     // the file does not exist (any more)
  kChanged,     // the file on disk has another build-id
  kUnreadable,  // not an ELF file, or a damaged one
  kNoSymbols,   // the file matches but has no function names
};

// Returns the rest of a sentence about a module: "is not on this machine", ...
const char* Describe(ModuleState state);

class SymbolCache;

// Returns the path of a file with a build-id (raw bytes), or "".
using FindByBuildId = std::function<std::string(const std::string& build_id)>;

struct SymbolizerOptions {
  // Prefix of module paths: "/proc/PID/root" shows the files of a process in a container.
  std::string root;
  // "/proc/PID" of the process while it lives, for deleted files that it has mapped.
  std::string process;
  std::vector<std::string> debug_dirs = {"/usr/lib/debug"};
  // Called in order if neither the module nor the debug directories have DWARF.
  std::vector<FindByBuildId> finders;
  // Limits of what stays open: the number of modules, and the bytes of our and libdw's tables. The
  // module in use stays open in any case.
  size_t max_open_modules = 64;
  uint64_t max_bytes = 512u << 20;
  // Names found before (symbols/symbol_cache.h). May be null; must outlive the symbolizer.
  SymbolCache* cache = nullptr;
};

class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options);
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // `address` is the address in the module's ELF file. Returns the innermost function first, or an
  // empty list if nothing is known.
  std::vector<ResolvedSymbol> Resolve(const ModuleKey& module, uint64_t address, AddressKind kind);

  // Opens the module if it is not open yet.
  ModuleState StateOf(const ModuleKey& module);

  size_t open_modules() const { return recent_.size(); }
  uint64_t open_bytes() const;

 private:
  class Module;
  Module& Open(const ModuleKey& key);
  void CloseOldest();
  void StayWithin(uint64_t bytes);

  SymbolizerOptions options_;
  std::list<std::unique_ptr<Module>> recent_;  // last used first
  absl::flat_hash_map<ModuleKey, std::list<std::unique_ptr<Module>>::iterator> open_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_SYMBOLIZER_H_
