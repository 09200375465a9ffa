#include "preload/base/thread_state.h"

namespace gmt::preload {

thread_local constinit ThreadState thread_state = {};

}  // namespace gmt::preload
