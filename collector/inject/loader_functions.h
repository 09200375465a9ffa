// collector/inject/loader_functions.h
//
// Where the functions lie by which a process of glibc loads a library. Since glibc 2.34 they are libc's.
// Before they are libdl's, which not every program loads; then libc has a way of its own, for itself
// (iconv, name services).
//
// Thread safety: free functions; values are plain.

#ifndef GMT_COLLECTOR_INJECT_LOADER_FUNCTIONS_H_
#define GMT_COLLECTOR_INJECT_LOADER_FUNCTIONS_H_

#include <cstdint>
#include <optional>

#include "collector/inject/memory_map.h"
#include "collector/inject/remote_image.h"
#include "collector/inject/remote_memory.h"

namespace gmt::inject {

// Addresses in the process; 0: there is none.
struct LoaderFunctions {
  uint64_t dlopen = 0, dlsym = 0;  // both or neither
  uint64_t dlerror = 0, errno_location = 0;
  uint64_t mode = 0;  // for dlopen
};

// The process's libc. Nothing where it has none of glibc's.
std::optional<RemoteImage> FindLibc(const RemoteMemory& memory, const MemoryMap& map);

// `libc`: what FindLibc() found.
LoaderFunctions FindLoaderFunctions(const RemoteMemory& memory, const MemoryMap& map,
                                    const RemoteImage& libc);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_LOADER_FUNCTIONS_H_
