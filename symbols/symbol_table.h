// symbols/symbol_table.h
//
// SymbolTable: which function of an ELF file an address lies in, by the file's own symbols
// (.symtab, else .dynsym).
//
// The table never guesses: an address beyond the size of the symbol before it belongs to nobody,
// because the nearest name in a stripped library is usually the wrong one and sends its reader
// hunting. Assembler symbols have no size; they reach to the next symbol or the end of their
// section, but no further than kMaxUnsizedBytes.
//
//   symbols        outer ............................  [0x100, 0x180)
//                        inner ......                  [0x120, 0x130)     (a cold part, an alias
//                        inside)
//   table        |outer |inner |outer              |   disjoint ranges, innermost symbol wins
//
// Cost: 24 bytes per function; names stay in the mapped file. Measured in symbols_benchmark on
// libtorch. Ownership: refers to the ElfFile, which must outlive it. Thread safety: Find() from one
// thread at a time (libelf).

#ifndef GMT_SYMBOLS_SYMBOL_TABLE_H_
#define GMT_SYMBOLS_SYMBOL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "symbols/elf_file.h"

namespace gmt::symbols {

inline constexpr uint64_t kMaxUnsizedBytes = 4096;

// A named range of addresses, before ranges are made disjoint.
struct SymbolRange {
  uint64_t start = 0, end = 0;
  uint32_t name = 0;   // offset in the string section
  uint32_t order = 0;  // where two symbols name one range: the lower is the better name
};

// Cuts ranges so that none overlaps another: at every address the range that starts last (and,
// among those, ends first) wins. The result is sorted.
std::vector<SymbolRange> MakeDisjoint(std::vector<SymbolRange> ranges);

class SymbolTable {
 public:
  explicit SymbolTable(const ElfFile& file);

  // The mangled name of the function that `address` (in the ELF file) lies in; empty where none is
  // known.
  std::string_view Find(uint64_t address) const;

  size_t size() const { return ranges_.size(); }
  uint64_t bytes() const { return ranges_.capacity() * sizeof(SymbolRange); }
  bool from_symtab() const { return from_symtab_; }

 private:
  void Load(uint32_t section_type);

  const ElfFile& file_;
  size_t string_section_ = 0;
  bool from_symtab_ = false;
  std::vector<SymbolRange> ranges_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_SYMBOL_TABLE_H_
