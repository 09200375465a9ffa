// symbols/symbol_table.h
//
// SymbolTable: finds the function of an ELF file that contains an address, using the file's own
// symbols (.symtab, otherwise .dynsym).
//
// The table never guesses: an address beyond the size of the preceding symbol belongs to no
// function, because the nearest name in a stripped library is usually wrong and misleading.
// Assembler symbols have no size; they extend to the next symbol or the end of their section, but
// at most kMaxUnsizedBytes.
//
//   symbols        outer ............................  [0x100, 0x180)
//                        inner ......                  [0x120, 0x130)     (a cold part, or an alias
//                                                                         inside)
//   table        |outer |inner |outer              |   disjoint ranges, innermost symbol wins
//
// Cost: 24 bytes per function; names stay in the mapped file. symbols_benchmark measures it on
// libtorch. Ownership: refers to the ElfFile, which must outlive it. Thread safety: Find() must be
// called by one thread at a time (libelf).

#ifndef GMT_SYMBOLS_SYMBOL_TABLE_H_
#define GMT_SYMBOLS_SYMBOL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "symbols/elf_file.h"

namespace gmt::symbols {

inline constexpr uint64_t kMaxUnsizedBytes = 4096;

// A named range of addresses, before the ranges are made disjoint.
struct SymbolRange {
  uint64_t start = 0, end = 0;
  uint32_t name = 0;   // offset in the string section
  uint32_t order = 0;  // for two symbols with the same range, the lower one has the better name
};

// Cuts ranges so that none overlaps another. At every address the range that starts last wins, and
// among those the one that ends first. The result is sorted.
std::vector<SymbolRange> MakeDisjoint(std::vector<SymbolRange> ranges);

class SymbolTable {
 public:
  explicit SymbolTable(const ElfFile& file);

  // Returns the mangled name of the function that contains `address` (in the ELF file), or "" if
  // unknown.
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
