// preload/start.h

#ifndef GMT_PRELOAD_START_H_
#define GMT_PRELOAD_START_H_

#include "preload/process.h"

namespace gmt::preload {

// Reads the options, names the recording, creates the session, starts the collector, finds the
// unwinder and says so on stderr. False where this process is not to be, or cannot be, recorded;
// the reason has then been said, once. REQUIRES: called once per process, by the thread that won
// Process's race to start.
bool StartSession(Process* process);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_START_H_
