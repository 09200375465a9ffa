// preload/hook.h
//
// The implementation behind the hook table: numbers and names of hooked functions, the real
// functions behind them, and the choice of a hook for a function that a program looks up.
//
// One hooked name can stand for several real functions in a process: one per runtime, and one per
// pointer that the loader or the driver hands out. Each of these is a slot. A hook instance (a
// template instantiation) permanently belongs to one slot.

#ifndef GMT_PRELOAD_HOOK_H_
#define GMT_PRELOAD_HOOK_H_

#include <stdint.h>

#include "preload/call_event.h"
#include "preload/real_function.h"
#include "preload/record_event.h"

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

// Returns whether `symbol` may be the name of a hooked function in some library.
bool IsHooked(const char* symbol);

// Returns the function to hand out for `symbol`, which a program looked up in a library and which
// resolved to `real`: our hook, or `real` itself if there is no hook or no free slot (which is
// counted). REQUIRES: real != nullptr.
void* HookFor(const char* symbol, void* real);

// Returns the new value of a slot that led to `real` (preload/got_patch.h). `exported` is this
// library's function of that name for callers of version node `node` (nullptr: no version). If
// `exported` already calls a different function, returns another hook. `real` may be nullptr if it
// is unknown; it is then looked up at the first call. For functions other than CUDA's, returns
// `exported`.
void* HookInFrontOf(const char* symbol, const char* node, void* exported, void* real);

// Same as HookFor(), for a program that asked the driver: by a name without a version suffix.
void HandOutHook(const HandingOut& what);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOK_H_
