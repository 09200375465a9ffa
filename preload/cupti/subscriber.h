// preload/cupti/subscriber.h
//
// Ownership of CUPTI. CUPTI takes one subscriber per process, and a profiler that comes second
// finds out too late. So this library subscribes last and leaves first:
//
//      not begun --- a context was seen ---> ours <----------------+
//                                             |                    | the other has unsubscribed and
//          any call by which another tool     |                    | disabled what it enabled, or
//          becomes a user of CUPTI, before    v                    | has finalized CUPTI
//          the call goes through          another's ---------------+
//
//      off for good: no library, an error, another tool that bypasses our exports, a fork child
//      of a process that had begun
//
// It leaves by cuptiUnsubscribe and by disabling its kinds, never by cuptiFinalize, which would end
// every tool's use. It returns at the end of a recorded call at least kSettleNs after the other
// tool left, because tools leave from inside a callback, where subscribing is not allowed.
//
// The current state is the fact kCuptiSource. A change of owner is also an event (kSource).
//
// Thread safety: all functions may be called from any thread. A thread that yields CUPTI waits at
// most two seconds for one that is about to subscribe.

#ifndef GMT_PRELOAD_CUPTI_SUBSCRIBER_H_
#define GMT_PRELOAD_CUPTI_SUBSCRIBER_H_

#include <stdint.h>

#include "preload/cupti/cupti_library.h"
#include "preload/record/cupti_attention.h"

namespace gmt::preload {

inline constexpr uint64_t kSettleNs = 100000000;

// Returns the library while we are its subscriber, otherwise nullptr.
const CuptiLibrary* OurCupti();

// ---- For preload/cupti/foreign_calls.cc ---------------------------------------------------------

// Returns whether this thread is changing the subscription; CUPTI's calls during that are our own
// requests.
bool ChangingCupti();
// Another tool, named `to`, is about to use CUPTI.
void YieldCupti(const char* to);
// The tool that owned it has stopped using it. `finalised`: no subscription of any tool exists any
// more.
void CuptiIsFree(bool finalised);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_SUBSCRIBER_H_
