// preload/stacks/unwind/loaded_module.h
//
// LoadedModule: what is mapped at an address, as far as its program headers tell.
//
// Where glibc has _dl_find_object (2.35) it is asked: lock-free, and safe in signal handlers. A
// module whose headers are not where linkers put them, and every module where glibc is older, is
// looked up in a list that ListModules() makes of all there are.
//
// Thread safety: FindLoadedModule() and IsStillLoaded() from any thread and signal handler, never
// waiting. While the list is being made they find nothing in it. The others take the loader's lock:
// not in hooks.

#ifndef GMT_PRELOAD_STACKS_UNWIND_LOADED_MODULE_H_
#define GMT_PRELOAD_STACKS_UNWIND_LOADED_MODULE_H_

#include <link.h>
#include <stdint.h>

namespace gmt::preload {

// Addresses [begin, end); empty where nothing was found.
struct Extent {
  uint64_t begin = 0, end = 0;
  bool Holds(uint64_t address, uint64_t size) const {
    return address >= begin && address <= end && size <= end - address;
  }
};

struct LoadedModule {
  uint64_t start, end;  // of all that is mapped; holes between segments count
  uint64_t bias;        // address in memory minus address in the ELF file
  const ElfW(Phdr) * headers;
  uint64_t header_count;
  const char* path;     // the loader's own text: "" for the main program; goes with the module
  const void* dynamic;  // its dynamic section, where that is known

  // The segment with all of these access bits (PF_R, PF_X) that `address` lies in.
  Extent SegmentAt(uint64_t address, uint32_t access) const;
  // The memory of the first segment of that type, 0 where there is none.
  uint64_t FindSegment(uint32_t type) const;
};

enum class FoundModule {
  kFound,
  kNothing,    // no module is mapped there
  kNotListed,  // one may be: it came after the list was made
};
FoundModule FindLoadedModule(uint64_t address, LoadedModule* module);

// Whether a module is mapped at exactly these addresses. Reads nothing of it: it may be going away.
bool IsStillLoaded(uint64_t start, uint64_t end);

// Looks _dl_find_object up, and lists all modules. To be called before the first walk of a process,
// a fork child among them.
void PrepareModules();
// Lists them again, because some have gone.
void ListModules();

// How many modules this process has unloaded so far.
uint64_t UnloadedModules();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_UNWIND_LOADED_MODULE_H_
