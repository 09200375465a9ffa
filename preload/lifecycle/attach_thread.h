// preload/lifecycle/attach_thread.h
//
// An attach begins at a hooked GPU call (preload/lifecycle/attach.h). A program whose runtime
// cached the addresses of the driver's functions may never make one. CUPTI reports such calls, but
// only after it has been enabled. The thread into which this library is injected cannot enable it:
// it may be in the middle of a driver call and hold the driver's locks. Therefore a thread of our
// own begins the recording if no call does. It also ends that recording, because without CUPTI no
// call would.

#ifndef GMT_PRELOAD_LIFECYCLE_ATTACH_THREAD_H_
#define GMT_PRELOAD_LIFECYCLE_ATTACH_THREAD_H_

namespace gmt::preload {

// Starts that thread. It exits when a hooked call has begun the recording, when the recording that
// it has begun itself ends, or after ten seconds without an attach. Does nothing if the thread is
// already running or cannot be created.
void StartAttachThread();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_ATTACH_THREAD_H_
