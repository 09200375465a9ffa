// preload/stacks/unwind/loaded_module.h
//
// LoadedModule: what is mapped at an address, according to the module's program headers.
//
// If glibc has _dl_find_object (2.35), it is used: it is lock-free, and safe in signal handlers. A
// module whose headers are not in the usual place, and every module if glibc is older, is looked up
// in a list of all modules made by ListModules().
//
// Thread safety: FindLoadedModule() and IsStillLoaded() may be called from any thread and signal
// handler, and never wait. While the list is being made they find nothing in it. The others take
// the loader's lock, so they must not be called in hooks.

#ifndef GMT_PRELOAD_STACKS_UNWIND_LOADED_MODULE_H_
#define GMT_PRELOAD_STACKS_UNWIND_LOADED_MODULE_H_

#include <link.h>
#include <stdint.h>

namespace gmt::preload {

// Addresses [begin, end); empty if nothing was found.
struct Extent {
  uint64_t begin = 0, end = 0;
  bool Holds(uint64_t address, uint64_t size) const {
    return address >= begin && address <= end && size <= end - address;
  }
};

struct LoadedModule {
  uint64_t start, end;  // of everything mapped, including holes between segments
  uint64_t bias;        // address in memory minus address in the ELF file
  const ElfW(Phdr) * headers;
  uint64_t header_count;
  const char* path;     // the loader's own string, "" for the main program; valid while the module
                        // is loaded
  const void* dynamic;  // its dynamic section, if known

  // Returns the segment that contains `address` and has all of these access bits (PF_R, PF_X).
  Extent SegmentAt(uint64_t address, uint32_t access) const;
  // Returns the address of the first segment of that type; 0 if there is none.
  uint64_t FindSegment(uint32_t type) const;
};

enum class FoundModule {
  kFound,
  kNothing,    // no module is mapped there
  kNotListed,  // there may be one: it was loaded after the list was made
};
FoundModule FindLoadedModule(uint64_t address, LoadedModule* module);

// Returns whether a module is mapped at exactly these addresses. Does not read the module, which
// may be going away.
bool IsStillLoaded(uint64_t start, uint64_t end);

// Looks up _dl_find_object, and lists all modules. To be called before the first walk of a process,
// including a fork child.
void PrepareModules();
// Lists them again, because some have been unloaded.
void ListModules();

// Returns how many modules this process has unloaded so far.
uint64_t UnloadedModules();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_UNWIND_LOADED_MODULE_H_
