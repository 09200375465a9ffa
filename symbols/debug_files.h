// symbols/debug_files.h
//
// Where the debug information of a stripped file lies, by the two conventions distributions use:
//
//   build-id      DIR/.build-id/ab/cdef....debug           for each debug directory
//   debug link    beside the file, in .debug/ beside it, and DIR/<directory of the file>/
//
// A file found by its link counts only if its build-id is that of the stripped file (or neither has
// one): names from another build are worse than none.
//
// Thread safety: pure function; opens files.

#ifndef GMT_SYMBOLS_DEBUG_FILES_H_
#define GMT_SYMBOLS_DEBUG_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "symbols/elf_file.h"

namespace gmt::symbols {

// The separate debug file of `file`; null where there is none.
std::unique_ptr<ElfFile> FindDebugFile(const ElfFile& file,
                                       const std::vector<std::string>& debug_dirs);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_DEBUG_FILES_H_
