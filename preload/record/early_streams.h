// preload/record/early_streams.h
//
// Streams that a program makes before it takes any memory, and so before it is recorded: PyTorch makes
// its side streams when it is asked for one. They are kept here and told when the recording begins, as
// of that moment.
//
// At most kMostEarlyStreams; further ones are not told, like those made where nobody could see it. A
// fork child begins with none.
//
// Thread safety: all functions from any thread. A stream that is made while the recording begins may
// be missed.

#ifndef GMT_PRELOAD_RECORD_EARLY_STREAMS_H_
#define GMT_PRELOAD_RECORD_EARLY_STREAMS_H_

#include "preload/record/call_event.h"
#include "preload/record/record_event.h"

namespace gmt::preload {

inline constexpr uint32_t kMostEarlyStreams = 1024;

// A call of kind kStream that has succeeded in a process that is not recorded.
void NoteEarlyStream(ApiId api, const Activity& what);

// The recording has begun.
void TellEarlyStreams(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_EARLY_STREAMS_H_
