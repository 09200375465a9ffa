// preload/hooks/hook.h
//
// The machinery behind the hook table: numbers and names of hooked functions, the real functions
// behind them, and which hook to hand out for a function that a program looks up.
//
// One hooked name can stand for several real functions in a process: one per runtime, and one per
// pointer that the loader or the driver hands out. Each is a slot; a hook instance (a template
// instantiation) belongs to one slot for ever.

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
// Slots behind those, and behind the one of a driver function's exported name, for pointers that
// programs looked up.
inline constexpr int kLookedUpSlots = 4;

// Error code of a hook that has nothing to call: cudaErrorSharedObjectSymbolNotFound and
// CUDA_ERROR_...: both 302.
inline constexpr int kSymbolNotFound = 302;

// The name of a hooked function; nullptr past the last.
const char* ApiName(ApiId api);

// Whether any hook has been called or handed out.
bool AnyHookUsed();

// Whether anybody has looked up, where we could see it, what every program asks the driver for that
// does not go through a runtime.
bool DriverWasLookedUp();

// The same as HookFor for a program that asked the driver: by a name without version suffix.
void HandOutHook(const HandingOut& what);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOKS_HOOK_H_
