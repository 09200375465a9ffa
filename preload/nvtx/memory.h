// preload/nvtx/memory.h
//
// NVTX's memory extension: heaps that a program manages itself, and the regions that it hands out of
// them. A region is memory of heap `nvtx`; a heap is a pool, whose bytes are counted where they came
// from. Recorded are those whose memory the driver knows: a heap may lie in any memory of the
// process.
//
//   cudaMalloc  |-------------------- driver --------------------|
//   heap          |----------- pool "arena" -----------|
//   regions        |-- "weights" --|   |-- "cache" --|             heap nvtx
//
// Thread safety: all functions from any thread, without a lock.

#ifndef GMT_PRELOAD_NVTX_MEMORY_H_
#define GMT_PRELOAD_NVTX_MEMORY_H_

#include "preload/nvtx/nvtx_headers.h"

namespace gmt::preload {

// Whether a module that asks for a tool is the memory extension, in a version that is known.
bool IsMemoryExtension(const nvtxExtModuleInfo_t& module);

// Puts this library's functions into the module's slots. What stands there already is another
// tool's, and called too. Nothing is changed where this library calls another function of that tool
// for the same call already.
void TakeMemoryExtension(const nvtxExtModuleInfo_t& module);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_MEMORY_H_
