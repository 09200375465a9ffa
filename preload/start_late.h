// preload/start_late.h

#ifndef GMT_PRELOAD_START_LATE_H_
#define GMT_PRELOAD_START_LATE_H_

#include <stddef.h>

namespace gmt::preload {

// gpumemtrace_start (preload/api.h).
int StartLate(char* text, size_t capacity);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_START_LATE_H_
