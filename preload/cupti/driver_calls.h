// preload/cupti/driver_calls.h
//
// Calls of the driver that come past the hooks. Where this library came late, a runtime that is linked
// statically has kept addresses of the driver's functions (preload/routes/kept_pointers.h), and no hook sees
// what it calls by these. CUPTI tells of such a call as it begins and as it ends; what happens then is
// what a hook would have done (preload/hooks/trace.h). Of memory alone: streams, contexts and waits are told
// by CUPTI's other callbacks.
//
// A call that a hook sees is that hook's: the thread is inside of it (thread_state.depth). Between the
// beginning and the end of a call of our own this thread is not marked as being inside, for its end
// may never be told: the subscription may end meanwhile.
//
// Thread safety: all functions from any thread. Apart from CUPTI's headers, which cannot stand beside
// all versions of the driver's functions.
// Cost: two callbacks a call, only where this library was brought into a running process.

#ifndef GMT_PRELOAD_CUPTI_DRIVER_CALLS_H_
#define GMT_PRELOAD_CUPTI_DRIVER_CALLS_H_

#include <stdint.h>

namespace gmt::preload {

// Whether there may be such calls.
bool WantsDriverCalls();

// The numbers of the calls to ask for, one after the other; 0 past the last.
uint32_t DriverCallId(int n);

// Whether any such call has been told of.
bool AnyDriverCallTold();

// No call is under way that was told of: a new subscription begins.
void ForgetDriverCalls();

struct DriverCall {
  uint32_t id;
  const void* data;   // CUPTI's struct of this function; nullptr where it does not tell
  uint64_t* scratch;  // keeps its value from the beginning of the call to its end; 0 at first
};
void OnDriverCallBegin(const DriverCall& call);
void OnDriverCallEnd(const DriverCall& call, uint32_t result);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_DRIVER_CALLS_H_
