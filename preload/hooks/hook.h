// preload/hooks/hook.h
//
// The implementation behind the hook table: numbers and names of hooked functions, the real
// functions behind them, and the choice of a hook for a function that a program looks up.
//
// One hooked name can stand for several real functions in a process: one per runtime, and one per
// pointer that the loader or the driver hands out. Each of these is a slot. A hook instance (a
// template instantiation) permanently belongs to one slot.

#ifndef GMT_PRELOAD_HOOKS_HOOK_H_
#define GMT_PRELOAD_HOOKS_HOOK_H_

#include <stdint.h>

#include "preload/base/api_id.h"
#include "preload/loader/real_function.h"
#include "preload/record/call_event.h"
#include "preload/routes/hook_lookup.h"

namespace gmt::preload {

// The first slots of a runtime function: one for each of kRuntimeNodes.
inline constexpr int kRuntimeNodeCount = sizeof(kRuntimeNodes) / sizeof(kRuntimeNodes[0]);
// Further slots, after those and after that of a driver function's exported name, for pointers that
// programs looked up.
inline constexpr int kLookedUpSlots = 4;

// Error code that a hook returns if it has no function to call: cudaErrorSharedObjectSymbolNotFound
// and CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND are both 302.
inline constexpr int kSymbolNotFound = 302;

// Returns the name of a hooked function; nullptr past the last.
const char* ApiName(ApiId api);

// Returns whether any hook has been called or handed out.
bool AnyHookUsed();

// Returns whether the program has visibly looked up a function that every program that bypasses the
// runtime requests from the driver.
bool DriverWasLookedUp();

// Same as HookFor(), for a program that asked the driver: by a name without a version suffix.
void HandOutHook(const HandingOut& what);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOKS_HOOK_H_
