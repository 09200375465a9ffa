// preload/cupti/activities.h
//
// Data that CUPTI delivers later, in buffers (option cupti=full): copies and fills as the device
// executed them, durations of waits, and CUPTI's own view of memory, against which ours can be
// checked.
//
// A thread of CUPTI delivers full buffers. The program's threads flush only at two moments: when
// the process ends, and before another tool takes over CUPTI, which would otherwise receive our
// buffers. If the process is killed, what CUPTI still holds is lost: at most a buffer of 64 KiB per
// thread.
//
// Thread safety: as for calls of CUPTI itself.

#ifndef GMT_PRELOAD_CUPTI_ACTIVITIES_H_
#define GMT_PRELOAD_CUPTI_ACTIVITIES_H_

#include "preload/cupti/cupti_library.h"
#include "preload/process/process.h"

namespace gmt::preload {

// Requests that CUPTI's buffers be in host memory. This is possible only before the first context
// exists.
void PrepareActivities(const CuptiLibrary& library);

// Enables records. Returns the first error; kinds enabled before it are disabled again.
CUptiResult EnableActivities(const CuptiLibrary& library);
// Retrieves outstanding records, and restores CUPTI's original state.
void DisableActivities(const CuptiLibrary& library);

// Returns the bytes of device memory that CUPTI takes in each context for copies and fills; 0 if
// CUPTI does not report them.
uint64_t CuptiDeviceBytes(const CuptiLibrary& library);

// Maps the numbers that records will carry to handles.
void LearnContext(const CuptiLibrary& library, CUcontext context);
void LearnStream(const CuptiLibrary& library, CUcontext context, CUstream stream);

// Takes a wait that has just ended and that no hook records. It is recorded when CUPTI has reported
// its duration.
void RecordSyncLater(Process* p, const session::Record& sync);

// Another tool registers its buffer callbacks or, with nullptr, has none any more. Once ours have
// been registered they stay registered and forward foreign buffers, because a thread that was
// writing a record while CUPTI changed owners may deliver a buffer of the previous owner to the
// next one.
void RegisterForeignBuffers(CUpti_BuffersCallbackRequestFunc* request,
                            CUpti_BuffersCallbackCompleteFunc* complete);
void ForgetForeignBuffers();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_ACTIVITIES_H_
