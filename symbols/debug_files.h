// symbols/debug_files.h
//
// Where the debug information of a stripped file lies, by the two conventions distributions use:
//
//   build-id      DIR/.build-id/ab/cdef....debug           for each debug directory
//   debug link    beside the file, in .debug/ beside it, and DIR/<directory of the file>/
//
// The directories are looked for below the root of the recorded process first, then here.
// A file counts only if its build-id is that of the stripped file (or neither has one): names from
// another build are worse than none.
//
// Thread safety: pure function; opens files.

#ifndef GMT_SYMBOLS_DEBUG_FILES_H_
#define GMT_SYMBOLS_DEBUG_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "symbols/elf_file.h"

namespace gmt::symbols {

// The separate debug file of a file with this build-id (raw bytes, may be empty); null where there
// is none. `file`: the stripped file, null where it is not here. `root`: what its path begins with
// where that is another process's root.
std::unique_ptr<ElfFile> FindDebugFile(const std::string& build_id, const ElfFile* file,
                                       const std::string& root,
                                       const std::vector<std::string>& debug_dirs);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_DEBUG_FILES_H_
