// preload/note_modules.h

#ifndef GMT_PRELOAD_NOTE_MODULES_H_
#define GMT_PRELOAD_NOTE_MODULES_H_

#include <stdint.h>

#include "preload/process.h"

namespace gmt::preload {

// Enters the modules of a new stack's frames into the session's module log, where they are not
// there yet. True when one of them took over addresses that belonged to another module before: the
// log's generation has risen. Lock-free where glibc has _dl_find_object (2.35) and a module has its
// program headers where linkers put them; else takes the loader's lock.
bool NoteModules(const Process& process, const uint64_t* frames, uint32_t depth);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NOTE_MODULES_H_
