// preload/lifecycle/start.h

#ifndef GMT_PRELOAD_LIFECYCLE_START_H_
#define GMT_PRELOAD_LIFECYCLE_START_H_

#include "preload/process/process.h"

namespace gmt::preload {

enum class Begun { kNothing, kDormant, kRecording };

// Reads the options, names the recording, creates the session, starts the collector, selects the
// unwinder, and reports this on stderr. If the process is to be dormant, only creates a session
// with an attach gate, and reports nothing. Returns kNothing if this process is not to be, or
// cannot be, recorded; the reason has then been reported once. REQUIRES: called once per process,
// by the thread that won Process's race to start.
Begun StartSession(Process* process);

// Returns whether StartSession() would make the process dormant.
bool IsToBeDormant();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_START_H_
