// preload/record/record_event.h
//
// Writing one event: its stack, the live table, the ring. What the spans (preload/hooks/span.h,
// preload/hooks/span_of_many.h) are made of.
//
// Thread safety: all functions from any thread. None takes a lock, allocates, or enters the kernel
// but for a stack or a context that is seen for the first time.

#ifndef GMT_PRELOAD_RECORD_RECORD_EVENT_H_
#define GMT_PRELOAD_RECORD_RECORD_EVENT_H_

#include "preload/base/api_id.h"
#include "preload/base/keep_errno.h"
#include "preload/process/process.h"
#include "session/record.h"

namespace gmt::preload {

// Fills in context and device by this thread's context, which gets an event of its own when it is
// new. Host memory has a context and no device.
void RecordContext(Process* p, session::Record* r);
// Enters a context under its number; a new one gets its event. 0: the table is full.
uint8_t EnterContext(Process* p, uint64_t handle, uint8_t device, const session::Record& like);

session::LiveValue ToLive(const session::Record& r, uint64_t ticket);
// What is in the table under that name is replaced.
void InsertLive(Process* p, session::Space space, uint64_t value, const session::LiveValue& live);

// Whether the end of such memory is recorded with a stack. Of what a caching allocator gives back to
// the driver it always is: that is rare and slow, and tells why.
inline bool WantsStackOfFree(const Process& p, session::Memory memory) {
  return p.options.free_stacks || (p.torch.has_blocks.load(std::memory_order_relaxed) &&
                                   Process::HeapOf(memory) == session::kDriverHeap);
}

// An event that changes nothing in the live table.
void CommitAlone(Process* p, const session::Record& r);
// An event that makes something live.
void CommitAcquisition(Process* p, const session::Record& r);
// Takes one entry out of the live table and records that, before the driver does it. Completes *r
// from the entry. False: it was not there.
bool CommitReturn(Process* p, session::Record* r, session::LiveValue* live);
// What the driver said to a return; a failure brings the entry back. `live`: nullptr where it was
// not there.
void CommitReturnDone(Process* p, session::Record r, uint64_t duration_ns, uint32_t result,
                      const session::LiveValue* live);

session::InFlightSlot* BeginInFlight(Process* p, const session::Record& r);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_RECORD_EVENT_H_
