// collector/inject/loader_functions.h
//
// Finds the functions with which a glibc process loads a library. Since glibc 2.34 they are in
// libc. In older releases they are in libdl, which not every program loads; libc then has internal
// versions of them, for its own use (iconv, name services).
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

// Addresses in the process; 0: not available.
struct LoaderFunctions {
  uint64_t dlopen = 0, dlsym = 0;  // both or neither
  uint64_t dlerror = 0, errno_location = 0;
  uint64_t mode = 0;  // for dlopen
};

// Returns the process's libc; nullopt if it has no glibc.
std::optional<RemoteImage> FindLibc(const RemoteMemory& memory, const MemoryMap& map);

// `libc`: the result of FindLibc().
LoaderFunctions FindLoaderFunctions(const RemoteMemory& memory, const MemoryMap& map,
                                    const RemoteImage& libc);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_LOADER_FUNCTIONS_H_
