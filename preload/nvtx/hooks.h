// preload/nvtx/hooks.h
//
// The functions of preload/nvtx/hook_table.inc as they appear in NVTX's tables: this library's
// functions, and for each the corresponding function of another tool, which is called too.
//
// Thread safety: as for NVTX's own tables: they are filled before NVTX makes its first call.

#ifndef GMT_PRELOAD_NVTX_HOOKS_H_
#define GMT_PRELOAD_NVTX_HOOKS_H_

#include <stddef.h>

#include <atomic>

#include "preload/nvtx/nvtx_headers.h"

namespace gmt::preload {

enum class NvtxHookId : uint32_t {
#define GMT_NVTX(module, function, ...) k##function,
#include "preload/nvtx/hook_table.inc"
  kCount,
};
inline constexpr size_t kNvtxHooks = static_cast<size_t>(NvtxHookId::kCount);

struct NvtxHook {
  NvtxCallbackModule module;
  uint32_t number;  // index in the module's table
  NvtxFunctionPointer function;
};

extern const NvtxHook kNvtxHookTable[kNvtxHooks];

// Another tool's functions, by NvtxHookId; nullptr: none.
extern constinit std::atomic<NvtxFunctionPointer> nvtx_next[kNvtxHooks];

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_HOOKS_H_
