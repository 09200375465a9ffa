// preload/lifecycle/attach_thread.h
//
// An attach begins at a hooked call of the GPU (preload/lifecycle/attach.h). A program whose runtime has kept the
// addresses of the driver's functions may never make one; CUPTI tells of its calls, but only once it is
// asked to. The thread that brings this library in cannot ask: it may stand in the middle of a call of
// the driver and have its locks. So a thread of our own begins the recording, where no call does, and
// ends it again: where CUPTI tells nothing, no call would.

#ifndef GMT_PRELOAD_LIFECYCLE_ATTACH_THREAD_H_
#define GMT_PRELOAD_LIFECYCLE_ATTACH_THREAD_H_

namespace gmt::preload {

// Starts that thread. It ends as soon as a call has begun the recording, with the recording that it has
// begun itself, or after ten seconds without an attach. Nothing where there is one, or none can be made.
void BeginAttachAside();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_ATTACH_THREAD_H_
