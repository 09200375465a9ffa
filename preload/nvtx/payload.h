// preload/nvtx/payload.h
//
// NVTX's payload extension. Only one of its functions matters here: before they create ranges, some
// programs ask it whether any tool wants ranges of a domain (Python's package nvtx, NCCL).
//
// Thread safety: all functions may be called from any thread.

#ifndef GMT_PRELOAD_NVTX_PAYLOAD_H_
#define GMT_PRELOAD_NVTX_PAYLOAD_H_

#include "preload/nvtx/nvtx_headers.h"

namespace gmt::preload {

// Puts this library's function into the slot if a module that asks for a tool is that extension, in
// a known version. A function already in the slot belongs to another tool, which is asked too.
void TakePayloadExtension(const nvtxExtModuleInfo_t& module);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_PAYLOAD_H_
