// symbols/dwarf_lines.h
//
// DwarfLines: functions, inlined calls and source lines of an ELF file with DWARF.
//
// Ownership: refers to the ElfFile, which must outlive it.
// Thread safety: one thread at a time (libdw).

#ifndef GMT_SYMBOLS_DWARF_LINES_H_
#define GMT_SYMBOLS_DWARF_LINES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "symbols/elf_file.h"

namespace gmt::symbols {

// A function and the source location in it: of the address, or of the call of the previous
// function in the list.
struct DwarfFrame {
  std::string function;  // linkage name (mangled) if there is one; empty if DWARF has no name
  std::string file;      // absolute if the compiler recorded its directory
  int line = 0;          // 0: unknown
};

class DwarfLines {
 public:
  // Returns null if the file has no DWARF that libdw can read.
  static std::unique_ptr<DwarfLines> Open(const ElfFile& file);
  virtual ~DwarfLines() = default;

  // Returns the innermost inlined function first and the function that contains the machine code
  // last. Returns an empty list if DWARF does not cover the address.
  virtual std::vector<DwarfFrame> Find(uint64_t address) = 0;

  // Returns the approximate memory that libdw uses for what it has read.
  virtual uint64_t bytes() const = 0;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_DWARF_LINES_H_
