// preload/nvtx/payload.h
//
// NVTX's payload extension, of which one function matters here: programs ask it whether anybody wants
// a domain's ranges before they make any (Python's package nvtx, NCCL).
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_NVTX_PAYLOAD_H_
#define GMT_PRELOAD_NVTX_PAYLOAD_H_

#include "preload/nvtx/nvtx_headers.h"

namespace gmt::preload {

// Answers for this library where a module that asks for a tool is that extension, in a version that
// is known. What stands in its slot already is another tool's, which is asked too.
void TakePayloadExtension(const nvtxExtModuleInfo_t& module);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_PAYLOAD_H_
