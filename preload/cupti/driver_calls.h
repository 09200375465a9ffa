// preload/cupti/driver_calls.h
//
// Driver calls that bypass the hooks. If this library was loaded late, a statically linked runtime
// has cached addresses of driver functions (preload/routes/kept_pointers.h), and no hook sees the
// calls it makes through them. CUPTI reports when such a call begins and ends, and the callbacks
// then do what a hook would have done (preload/hooks/traced_call.h). This concerns memory only:
// streams, contexts and waits are covered by CUPTI's other callbacks.
//
// A call that a hook sees is left to the hook; the thread is then inside it (thread_state.depth).
// During a call handled here, the thread is not marked as inside, because its end may never be
// reported: the subscription may end meanwhile.
//
// Thread safety: all functions may be called from any thread. Separate from CUPTI's headers, which
// cannot be included together with all versions of the driver's functions. Cost: two callbacks per
// call, only if this library was injected into a running process.

#ifndef GMT_PRELOAD_CUPTI_DRIVER_CALLS_H_
#define GMT_PRELOAD_CUPTI_DRIVER_CALLS_H_

#include <stdint.h>

namespace gmt::preload {

// Returns whether there may be such calls.
bool WantsDriverCalls();

// Returns the n-th callback id to enable; 0 past the last.
uint32_t DriverCallId(int n);

// Returns whether any such call has been reported.
bool AnyDriverCallSeen();

// Forgets calls in progress, because a new subscription begins.
void ForgetDriverCalls();

struct DriverCall {
  uint32_t id;
  const void* data;   // CUPTI's struct for this function; nullptr if CUPTI passes none
  uint64_t* scratch;  // keeps its value from the call's beginning to its end; initially 0
};
void OnDriverCallBegin(const DriverCall& call);
void OnDriverCallEnd(const DriverCall& call, uint32_t result);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_DRIVER_CALLS_H_
