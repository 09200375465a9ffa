// preload/cupti/subscriber.h
//
// Who has CUPTI. It takes one subscriber in a process, and profilers find out too late that they are
// the second. So ours comes last and goes first:
//
//      not begun --- a context was seen ---> ours <------------------+
//                                             |                      | the other has unsubscribed and
//          any call of another tool that      |                      | disabled what it enabled, or
//          makes it a user of CUPTI, before   v                      | has finalised CUPTI
//          it goes through                 another's ----------------+
//
//      off for good: no library, an error, another tool that does not go through our exports, a child
//      of a process that had begun
//
// Ours goes by cuptiUnsubscribe and by disabling its kinds, never by cuptiFinalize, which would end
// everybody's. It comes back at the end of a recorded call at least kSettleNs after the other left:
// tools leave from inside a callback, where nobody may subscribe.
//
// How it is is the fact kCuptiSource; that it changed hands is an event (kSource) as well.
//
// Thread safety: all functions from any thread. One that yields waits at most two seconds for one
// that is about to subscribe.

#ifndef GMT_PRELOAD_CUPTI_SUBSCRIBER_H_
#define GMT_PRELOAD_CUPTI_SUBSCRIBER_H_

#include <stdint.h>

#include "preload/cupti/cupti_library.h"
#include "preload/record/cupti_attention.h"

namespace gmt::preload {

inline constexpr uint64_t kSettleNs = 100000000;

// While we are its subscriber, else nullptr.
const CuptiLibrary* OurCupti();

// ---- For preload/cupti/foreign_calls.cc ---------------------------------------------------------

// Whether this thread is changing the subscription: what CUPTI calls then, we asked for.
bool ChangingCupti();
// Another tool, of that name, is about to use CUPTI.
void YieldCupti(const char* to);
// The tool that had it does not use it any more. `finalised`: nobody's subscription exists any more.
void CuptiIsFree(bool finalised);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_SUBSCRIBER_H_
