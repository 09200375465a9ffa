// preload/record/note_modules.h

#ifndef GMT_PRELOAD_RECORD_NOTE_MODULES_H_
#define GMT_PRELOAD_RECORD_NOTE_MODULES_H_

#include <stdint.h>

#include "preload/process/process.h"

namespace gmt::preload {

// Adds the modules of a new stack's frames (in the session's encoding: session/layout.h) to the
// session's module log, unless they are there already. Returns true if the stack must be walked
// again: one of the modules took over addresses of an earlier module (the log's generation has
// risen), or determines where walks end (preload/stacks/greenlets.h). Lock-free if glibc has
// _dl_find_object (2.35) and the module's program headers are in the usual place; otherwise takes
// the loader's lock. Cost: about a tenth of a microsecond per known module.
bool NoteModules(const Process& process, const uint64_t* frames, uint32_t depth);

// Marks the known modules of the log for re-checking. To be called before a library may be
// unloaded.
void RecheckKnownModules();

// Records which modules of the log are no longer loaded. Not for use in hooks: to be called after a
// library has been unloaded and modules are listed again (preload/stacks/unwind/loaded_module.h).
void NoteGoneModules(const Process& process);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_NOTE_MODULES_H_
