// preload/cupti/activities.h
//
// What CUPTI tells later, in buffers (option cupti=full): copies and fills as the device carried them
// out, how long waits were, and what it knows of memory, against which ours can be held.
//
// A thread of CUPTI's brings the buffers that are full. Nothing is flushed on the program's threads
// but at two moments: when the process ends, and before another tool gets CUPTI, which would be given
// our buffers otherwise. What CUPTI holds when the process is killed is lost: at most a buffer of
// 64 KiB for each thread.
//
// Thread safety: as CUPTI calls.

#ifndef GMT_PRELOAD_CUPTI_ACTIVITIES_H_
#define GMT_PRELOAD_CUPTI_ACTIVITIES_H_

#include "preload/cupti/cupti_library.h"
#include "preload/process/process.h"

namespace gmt::preload {

// Asks for CUPTI's buffers in host memory, where that is still possible: before the first context.
void PrepareActivities(const CuptiLibrary& library);

// Asks for records. The first error; what was enabled before it is disabled again.
CUptiResult EnableActivities(const CuptiLibrary& library);
// Gets back what is on its way, and leaves CUPTI as it was found.
void DisableActivities(const CuptiLibrary& library);

// Bytes of device memory that CUPTI takes in each context for copies and fills; 0: it does not say.
uint64_t CuptiDeviceBytes(const CuptiLibrary& library);

// Learns the numbers that records will have.
void LearnContext(const CuptiLibrary& library, CUcontext context);
void LearnStream(const CuptiLibrary& library, CUcontext context, CUstream stream);

// A wait that ended now and that no hook records: told when CUPTI has said how long it was.
void RecordSyncLater(Process* p, const session::Record& sync);

// Another tool registers its callbacks for buffers, or (nullptr) has none any more. Once ours have
// been registered they stay, and pass on what is not ours: a thread that was in the middle of a
// record while CUPTI changed hands may bring a buffer of the one before to the one after.
void RegisterForeignBuffers(CUpti_BuffersCallbackRequestFunc* request,
                            CUpti_BuffersCallbackCompleteFunc* complete);
void ForgetForeignBuffers();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_ACTIVITIES_H_
