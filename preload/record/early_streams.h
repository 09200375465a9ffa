// preload/record/early_streams.h
//
// Streams that a program creates before it allocates any memory, and therefore before it is
// recorded. (PyTorch creates all its side streams when it is asked for the first one.) They are
// kept here and written when the recording begins, with that time.
//
// At most kMaxEarlyStreams are kept. Further ones are not recorded, like streams created before
// this library could intercept calls. A fork child begins with none.
//
// Thread safety: all functions may be called from any thread. A stream that is created while the
// recording begins may be missed.

#ifndef GMT_PRELOAD_RECORD_EARLY_STREAMS_H_
#define GMT_PRELOAD_RECORD_EARLY_STREAMS_H_

#include "preload/record/call_event.h"
#include "preload/record/record_event.h"

namespace gmt::preload {

inline constexpr uint32_t kMaxEarlyStreams = 1024;

// Keeps the stream of a call of kind kStream that has succeeded in a process that is not being
// recorded.
void KeepEarlyStream(ApiId api, const Activity& what);

// Writes the kept streams. Called when the recording has begun.
void RecordEarlyStreams(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_EARLY_STREAMS_H_
