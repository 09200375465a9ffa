// preload/lifecycle/start_late.h

#ifndef GMT_PRELOAD_LIFECYCLE_START_LATE_H_
#define GMT_PRELOAD_LIFECYCLE_START_LATE_H_

#include <stddef.h>

namespace gmt::preload {

// gpumemtrace_start (preload/lifecycle/api.h).
int StartLate(char* text, size_t capacity);

// gpumemtrace_attach (preload/lifecycle/api.h).
int AttachFromInside(const char* options, char* text, size_t capacity);
// gpumemtrace_undo_attach (preload/lifecycle/api.h).
int UndoAttachFromInside(char* text, size_t capacity);
// Returns the options that were passed to gpumemtrace_attach; otherwise "".
const char* InjectedOptions();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LIFECYCLE_START_LATE_H_
