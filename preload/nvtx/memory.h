// preload/nvtx/memory.h
//
// NVTX's memory extension: heaps that a program manages itself, and the regions that it hands out
// from them. A region is memory of heap `nvtx`. A heap is a pool, whose bytes are counted where
// they were allocated. Only those in memory that the driver knows are recorded, because a heap may
// lie in any memory of the process.
//
//   cudaMalloc  |-------------------- driver --------------------|
//   heap          |----------- pool "arena" -----------|
//   regions        |-- "weights" --|   |-- "cache" --|             heap nvtx
//
// Thread safety: all functions may be called from any thread; lock-free.

#ifndef GMT_PRELOAD_NVTX_MEMORY_H_
#define GMT_PRELOAD_NVTX_MEMORY_H_

#include "preload/nvtx/nvtx_headers.h"

namespace gmt::preload {

// Returns whether a module that asks for a tool is the memory extension, in a known version.
bool IsMemoryExtension(const nvtxExtModuleInfo_t& module);

// Puts this library's functions into the module's slots. A function already in a slot belongs to
// another tool and is called too. Changes nothing if, for the same call, this library already calls
// a different function of that tool.
void TakeMemoryExtension(const nvtxExtModuleInfo_t& module);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_MEMORY_H_
