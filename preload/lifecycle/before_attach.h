// preload/lifecycle/before_attach.h
//
// What was allocated before somebody attached, as far as others know: PyTorch's allocator tells its
// segments and blocks, the driver what is free. Told as allocations of the API "(before attach)",
// without a stack, at the time of the attach.
//
//   the call that begins the recording     the driver's totals; asks Python to call us (no thread, no
//                                          GIL, no waiting)
//   Python's main thread, between two      torch.cuda.memory_snapshot(), where torch.cuda has been
//   instructions, whenever that is         initialised; what a hook has seen meanwhile stays as it is
//
// Frees in other threads meanwhile are noted before they are carried out, so that what is told of a
// block that has just gone is taken back.
//
// Expandable segments are left out: what their parts are given back by is not told. Their blocks are
// not.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_LIFECYCLE_BEFORE_ATTACH_H_
#define GMT_PRELOAD_LIFECYCLE_BEFORE_ATTACH_H_

namespace gmt::preload {

struct Process;

// The name of session::kBeforeAttachApi.
inline constexpr char kBeforeAttachName[] = "(before attach)";

// At the beginning of what is recorded for an attach.
void TellWhatWasBefore(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_BEFORE_ATTACH_H_
