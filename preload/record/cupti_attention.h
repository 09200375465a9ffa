// preload/record/cupti_attention.h
//
// Begins CUPTI, or begins it again (preload/cupti/subscriber.h), at the end of a recorded call
// after a context has been seen. Separate from CUPTI's headers, which cannot be included together
// with all versions of the driver's functions. Implemented by preload/cupti/subscriber.cc.

#ifndef GMT_PRELOAD_RECORD_CUPTI_ATTENTION_H_
#define GMT_PRELOAD_RECORD_CUPTI_ATTENTION_H_

#include <atomic>

#include "preload/process/process.h"

namespace gmt::preload {

extern constinit std::atomic<bool> cupti_wants_attention;
void AttendToCupti(Process* p);

// To be called after a recorded call has been carried out. Costs a load.
inline void GiveCuptiAttention(Process* p) {
  if (__builtin_expect(cupti_wants_attention.load(std::memory_order_relaxed), 0)) AttendToCupti(p);
}

// A context exists, so CUPTI may begin.
inline void CuptiMayBegin() { cupti_wants_attention.store(true, std::memory_order_relaxed); }
// Disables everything requested from CUPTI until it is begun again. If a thread is just beginning
// it, waits for that thread for up to `patience_ms` milliseconds; returns false if it is still busy
// then.
bool EndCupti(Process* p, uint32_t patience_ms);
// Requests, if enabled, what takes effect only before the first context exists, and the callbacks
// for calls that no hook sees.
void BeginCuptiEarly(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_CUPTI_ATTENTION_H_
