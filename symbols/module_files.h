// symbols/module_files.h
//
// Finds the files for a recorded module: the module itself, if it still exists in the recorded
// version, and its debug information.
//
//   the module     ROOT/path; for a deleted file, the living process's copy of it; the vdso
//   debug          by build-id or link (symbols/debug_files.h), then from the finders
//
// If the module is missing or was replaced by another version, its debug file is sufficient: it
// has the same build-id, the same addresses and all names.
//
// Thread safety: pure function; opens files.

#ifndef GMT_SYMBOLS_MODULE_FILES_H_
#define GMT_SYMBOLS_MODULE_FILES_H_

#include <memory>
#include <string>

#include "symbols/elf_file.h"
#include "symbols/symbolizer.h"

namespace gmt::symbols {

struct ModuleFiles {
  ModuleState state = ModuleState::kUsable;  // otherwise there are no files, and this is the reason
  std::unique_ptr<ElfFile> file;             // the module or its replacement
  std::unique_ptr<ElfFile> debug;            // may be null
};

// Returns a text that identifies the source of the names: build-id and stamps of the files.
// Returns "" if the files cannot be identified.
std::string IdentityOf(const ModuleKey& module, const ModuleFiles& files);

ModuleFiles OpenModuleFiles(const ModuleKey& module, const SymbolizerOptions& options);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_MODULE_FILES_H_
