// preload/lifecycle/start.h

#ifndef GMT_PRELOAD_LIFECYCLE_START_H_
#define GMT_PRELOAD_LIFECYCLE_START_H_

#include "preload/process/process.h"

namespace gmt::preload {

enum class Begun { kNothing, kDormant, kRecording };

// Reads the options, names the recording, creates the session, starts the collector, finds the
// unwinder and says so on stderr. Where the process is to be dormant, a session with a door is all
// that it makes, and it says nothing. kNothing where this process is not to be, or cannot be,
// recorded; the reason has then been said, once. REQUIRES: called once per process, by the thread that
// won Process's race to start.
Begun StartSession(Process* process);

// Whether that would make the process dormant.
bool IsToBeDormant();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_START_H_
