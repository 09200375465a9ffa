// preload/record/note_modules.h

#ifndef GMT_PRELOAD_RECORD_NOTE_MODULES_H_
#define GMT_PRELOAD_RECORD_NOTE_MODULES_H_

#include <stdint.h>

#include "preload/process/process.h"

namespace gmt::preload {

// Enters the modules of a new stack's frames (as a stack holds them: session/layout.h) into the
// session's module log, where they are not there yet. True when the stack is to be walked once more:
// one of them took over addresses that belonged to another module before (the log's generation has
// risen), or tells walks where to end (preload/stacks/greenlets.h). Lock-free where glibc has
// _dl_find_object (2.35) and a module has its program headers where linkers put them; else takes
// the loader's lock. Cost: about a tenth of a microsecond for each module that is known.
bool NoteModules(const Process& process, const uint64_t* frames, uint32_t depth);

// Before a library may be unloaded: what is known to be in the log is to be looked at again.
void DoubtKnownModules();

// Notes which modules of the log are no longer loaded. Not in hooks: to be called when a library
// has been unloaded and modules are listed anew (preload/stacks/unwind/loaded_module.h).
void NoteGoneModules(const Process& process);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_NOTE_MODULES_H_
