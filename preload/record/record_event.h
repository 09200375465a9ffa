// preload/record/record_event.h
//
// Writes one event: its stack, the live table, the ring. The building blocks of the spans
// (preload/hooks/span.h, preload/hooks/span_of_many.h).
//
// Thread safety: all functions may be called from any thread. None takes a lock or allocates, and
// none enters the kernel except for a stack or a context that is seen for the first time.

#ifndef GMT_PRELOAD_RECORD_RECORD_EVENT_H_
#define GMT_PRELOAD_RECORD_RECORD_EVENT_H_

#include "preload/base/api_id.h"
#include "preload/base/keep_errno.h"
#include "preload/process/process.h"
#include "session/record.h"

namespace gmt::preload {

// Fills in context and device from this thread's context. A new context gets its own event. Host
// memory has a context and no device.
void RecordContext(Process* p, session::Record* r);
// Registers a context under its handle and returns its id; a new one gets its event. Returns 0 if
// the table is full.
uint8_t EnterContext(Process* p, uint64_t handle, uint8_t device, const session::Record& like);

session::LiveValue ToLive(const session::Record& r, uint64_t ticket);
// Replaces any entry that the table has under that key.
void InsertLive(Process* p, session::Space space, uint64_t value, const session::LiveValue& live);

// Returns whether frees of such memory are recorded with a stack. Frees by which a caching
// allocator returns memory to the driver always are: they are rare and slow, and the stack explains
// them.
inline bool WantsStackOfFree(const Process& p, session::Memory memory) {
  return p.options.free_stacks || (p.torch.has_blocks.load(std::memory_order_relaxed) &&
                                   Process::HeapOf(memory) == session::kDriverHeap);
}

// If PyTorch's allocator keeps no blocks, the driver's memory that this thread allocates may be for
// the tensor that it is creating: assigns the tensor's layout to it.
void TakeTensorLayout(Process* p, session::Record* r);

// Records an event that changes nothing in the live table.
void CommitAlone(Process* p, const session::Record& r);
// Records an event that makes something live.
void CommitAcquisition(Process* p, const session::Record& r);
// Removes one entry from the live table and records that, before the driver frees it. Completes *r
// from the entry. Returns false if there was no entry.
bool CommitReturn(Process* p, session::Record* r, session::LiveValue* live);
// Records the driver's result of a return; if it failed, restores the entry. `live`: nullptr if
// there was no entry.
void CommitReturnDone(Process* p, session::Record r, uint64_t duration_ns, uint32_t result,
                      const session::LiveValue* live);

session::InFlightSlot* BeginInFlight(Process* p, const session::Record& r);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_RECORD_EVENT_H_
