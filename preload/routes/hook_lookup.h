// preload/routes/hook_lookup.h
//
// Which of this library's hooks stands in front of a function that a program looks up or is linked to.
// Implemented by preload/hooks/hook.cc.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_ROUTES_HOOK_LOOKUP_H_
#define GMT_PRELOAD_ROUTES_HOOK_LOOKUP_H_

namespace gmt::preload {

// Whether a library may define a function of that name that is hooked.
bool IsHooked(const char* symbol);

// What a program gets that looked up `symbol` in a library and would have got `real`: our hook for
// that function, or `real` itself where we have none (or no slot is free: counted).
// REQUIRES: real != nullptr.
void* HookFor(const char* symbol, void* real);

// What a slot that led to `real` is to lead to (preload/routes/got_patch.h). `exported`: this library's
// function of that name for callers of that version node (nullptr: they name none). Where it calls
// something else already, another hook. nullptr for `real`: not known; it is looked for at the first
// call. Other functions than CUDA's: `exported`.
void* HookInFrontOf(const char* symbol, const char* node, void* exported, void* real);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_HOOK_LOOKUP_H_
