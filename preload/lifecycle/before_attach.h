// preload/lifecycle/before_attach.h
//
// Memory that was allocated before a client attached, as far as others know it: PyTorch's allocator
// reports its segments and blocks, the driver reports how much is free. Recorded as allocations of
// the API "(before attach)", without a stack, with the time of the attach.
//
//   the call that begins the recording   the driver's totals; asks Python to call back (no thread,
//                                        no GIL, no waiting)
//   Python's main thread, between two    torch.cuda.memory_snapshot() if torch.cuda is initialized;
//   instructions, at some later time     entries recorded by hooks meanwhile are left unchanged
//
// Frees that other threads make meanwhile are noted before they are carried out, so that a block
// that was reported but has just been freed is removed again.
//
// Expandable segments are left out because the calls that release their parts are not reported.
// Their blocks are recorded.
//
// Thread safety: all functions may be called from any thread.

#ifndef GMT_PRELOAD_LIFECYCLE_BEFORE_ATTACH_H_
#define GMT_PRELOAD_LIFECYCLE_BEFORE_ATTACH_H_

namespace gmt::preload {

struct Process;

// The name of session::kBeforeAttachApi.
inline constexpr char kBeforeAttachName[] = "(before attach)";

// Called when the recording of an attach begins.
void RecordPriorAllocations(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_BEFORE_ATTACH_H_
