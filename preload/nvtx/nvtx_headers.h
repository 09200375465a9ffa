// preload/nvtx/nvtx_headers.h
//
// NVTX's own headers, only for their types and numbers: this library does not call NVTX.

#ifndef GMT_PRELOAD_NVTX_NVTX_HEADERS_H_
#define GMT_PRELOAD_NVTX_NVTX_HEADERS_H_

#define NVTX_NO_IMPL
#include <cuda.h>
#include <driver_types.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtMem.h>

#endif  // GMT_PRELOAD_NVTX_NVTX_HEADERS_H_
