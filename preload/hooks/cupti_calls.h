// preload/hooks/cupti_calls.h
//
// Who else uses CUPTI in this process: another tool has it from its first call that uses it to the one
// after which it is subscribed no more and has disabled what it enabled. Calls of a tool's that do
// not go through our exports are not seen; such a tool is met as error 39.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_HOOKS_CUPTI_CALLS_H_
#define GMT_PRELOAD_HOOKS_CUPTI_CALLS_H_

namespace gmt::preload {

// Whether a library may define a function of that name that is hooked here.
bool IsHookedOfCupti(const char* symbol);
// What a program gets that looked up `symbol` and would have got `real`; `real` itself where it is
// not hooked, or no slot is free.
void* CuptiHookFor(const char* symbol, void* real);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOKS_CUPTI_CALLS_H_
