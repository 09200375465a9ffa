// symbols/module_files.h
//
// The files that speak of a recorded module: the module itself, if it is here and still is the one
// that was recorded, and its debug information.
//
//   the module     ROOT/path; of a deleted file what the living process has of it; the vdso
//   debug          by build-id or link (symbols/debug_files.h), then what the finders give
//
// Where the module is gone or another one stands in its place, its debug file alone will do: it has
// the same build-id, the same addresses and all names.
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
  ModuleState state = ModuleState::kUsable;  // else there are no files, and this is why
  std::unique_ptr<ElfFile> file;             // the module, or what stands for it
  std::unique_ptr<ElfFile> debug;            // may be null
};

// What names depend on, as a text: build-id and stamps of the files. Empty where they cannot be told
// from others.
std::string IdentityOf(const ModuleKey& module, const ModuleFiles& files);

ModuleFiles OpenModuleFiles(const ModuleKey& module, const SymbolizerOptions& options);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_MODULE_FILES_H_
