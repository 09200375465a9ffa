// preload/hook.h
//
// The machinery behind the hook table: numbers and names of hooked functions, the real functions
// behind them, and which hook to hand out for a driver function that a program asks for by name.
//
// One hooked name can stand for several real functions in a process: one per runtime, and one per
// pointer that the driver hands out. Each is a slot; a hook instance (a template instantiation)
// belongs to one slot for ever.

#ifndef GMT_PRELOAD_HOOK_H_
#define GMT_PRELOAD_HOOK_H_

#include <atomic>

#include "preload/span.h"

namespace gmt::preload {

// Slots of a runtime function: one per runtime major, in this order.
inline constexpr const char* kRuntimeNodes[] = {"libcudart.so.11.0", "libcudart.so.12",
                                                "libcudart.so.13", "libcudart.so.14",
                                                "libcudart.so.15"};
// Slots of a driver function: the exported name, then pointers that were asked for.
inline constexpr int kDriverSlots = 4;

// Error code of a hook that has nothing to call: cudaErrorSharedObjectSymbolNotFound and
// CUDA_ERROR_...: both 302.
inline constexpr int kSymbolNotFound = 302;

// The name of a hooked function; nullptr past the last.
const char* ApiName(ApiId api);

// What a program gets that asked the driver for `name`, as of CUDA `version`, and would have got
// `real`: our hook for that function, or `real` itself where we have none (or no slot is free:
// counted).
void* DriverHookFor(const char* name, unsigned version, void* real);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOK_H_
