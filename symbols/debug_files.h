// symbols/debug_files.h
//
// Finds the debug information of a stripped file by the two conventions that distributions use:
//
//   build-id      DIR/.build-id/ab/cdef....debug           for each debug directory
//   debug link    next to the file, in .debug/ next to it, and DIR/<directory of the file>/
//
// Directories are searched below the root of the recorded process first, then on this system. A
// file is accepted only if its build-id equals that of the stripped file (or neither has one),
// because names from another build are worse than none.
//
// Thread safety: pure function; opens files.

#ifndef GMT_SYMBOLS_DEBUG_FILES_H_
#define GMT_SYMBOLS_DEBUG_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "symbols/elf_file.h"

namespace gmt::symbols {

// Returns the separate debug file of a file with this build-id (raw bytes, may be empty), or null
// if there is none. `file`: the stripped file, or null if it does not exist here. `root`: prefix
// of its path if that belongs to another process's root.
std::unique_ptr<ElfFile> FindDebugFile(const std::string& build_id, const ElfFile* file,
                                       const std::string& root,
                                       const std::vector<std::string>& debug_dirs);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_DEBUG_FILES_H_
