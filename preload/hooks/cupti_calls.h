// preload/hooks/cupti_calls.h
//
// Tracks other users of CUPTI in this process. Another tool owns CUPTI from its first call that
// uses it until it has unsubscribed and disabled everything it enabled. Calls that do not go
// through our exports are not seen; such a tool is noticed by error 39. Implemented by
// preload/cupti/foreign_calls.cc.
//
// Thread safety: all functions may be called from any thread.

#ifndef GMT_PRELOAD_HOOKS_CUPTI_CALLS_H_
#define GMT_PRELOAD_HOOKS_CUPTI_CALLS_H_

namespace gmt::preload {

// Returns whether `symbol` may be the name of a CUPTI function that is hooked here.
bool IsHookedOfCupti(const char* symbol);
// Returns the function to hand out for `symbol`, which a program looked up and which resolved to
// `real`; `real` itself if it is not hooked or no slot is free.
void* CuptiHookFor(const char* symbol, void* real);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOKS_CUPTI_CALLS_H_
