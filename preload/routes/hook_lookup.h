// preload/routes/hook_lookup.h
//
// Which of this library's hooks stands in front of a function that a program looks up or is linked
// to. Implemented by preload/hooks/hook.cc.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_ROUTES_HOOK_LOOKUP_H_
#define GMT_PRELOAD_ROUTES_HOOK_LOOKUP_H_

namespace gmt::preload {

// Returns whether `symbol` may be the name of a hooked function in some library.
bool IsHooked(const char* symbol);

// Returns the function to hand out for `symbol`, which a program looked up in a library and which
// resolved to `real`: our hook, or `real` itself if there is no hook or no free slot (which is
// counted). REQUIRES: real != nullptr.
void* HookFor(const char* symbol, void* real);

// Returns the new value of a slot that led to `real` (preload/routes/got_patch.h). `exported` is
// this library's function of that name for callers of version node `node` (nullptr: no version). If
// `exported` already calls a different function, returns another hook. `real` may be nullptr if it
// is unknown; it is then looked up at the first call. For functions other than CUDA's, returns
// `exported`.
void* HookInFrontOf(const char* symbol, const char* node, void* exported, void* real);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_HOOK_LOOKUP_H_
