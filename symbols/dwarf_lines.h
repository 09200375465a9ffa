// symbols/dwarf_lines.h
//
// DwarfLines: functions, inlined calls and source lines of one ELF file that has DWARF.
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

// A function and the place in it where the address, or the call of the function before it in the
// list, stands.
struct DwarfFrame {
  std::string function;  // linkage name (mangled) where there is one; empty where DWARF names none
  std::string file;      // absolute where the compiler recorded its directory
  int line = 0;          // 0: not known
};

class DwarfLines {
 public:
  // Null where the file has no DWARF, or none that libdw can read.
  static std::unique_ptr<DwarfLines> Open(const ElfFile& file);
  virtual ~DwarfLines() = default;

  // Innermost inlined function first, the function that holds the machine code last. Empty where
  // DWARF does not cover the address.
  virtual std::vector<DwarfFrame> Find(uint64_t address) = 0;

  // About as many as libdw holds of what it has read.
  virtual uint64_t bytes() const = 0;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_DWARF_LINES_H_
