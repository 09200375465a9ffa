#include "preload/base/thread_state.h"

namespace gmt::preload {

// State: of one thread, which goes on in a fork child. What belongs to a process is kept with that
// process's identity.
thread_local constinit ThreadState thread_state = {};

}  // namespace gmt::preload
