// preload/record/cupti_attention.h
//
// When CUPTI is begun, and begun again (preload/cupti/subscriber.h): at the end of a recorded call,
// once a context has been seen. Apart from CUPTI's headers, which cannot stand beside all versions of
// the driver's functions.

#ifndef GMT_PRELOAD_RECORD_CUPTI_ATTENTION_H_
#define GMT_PRELOAD_RECORD_CUPTI_ATTENTION_H_

#include <atomic>

#include "preload/process/process.h"

namespace gmt::preload {

extern constinit std::atomic<bool> cupti_wants_attention;
void AttendToCupti(Process* p);

// To be called where a recorded call has been carried out: a load.
inline void GiveCuptiAttention(Process* p) {
  if (__builtin_expect(cupti_wants_attention.load(std::memory_order_relaxed), 0)) AttendToCupti(p);
}

// A context exists, so CUPTI may be begun.
inline void CuptiMayBegin() { cupti_wants_attention.store(true, std::memory_order_relaxed); }
// What CUPTI was asked to tell is not wanted any more, until it is begun anew. Waits so many milliseconds
// for a thread that is beginning it; false where it is at it still.
bool EndCupti(Process* p, uint32_t patience_ms);
// What takes effect only before the first context is asked for now, where that is wanted; and what
// tells of calls that no hook sees.
void BeginCuptiEarly(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_CUPTI_ATTENTION_H_
