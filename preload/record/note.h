// preload/record/note.h
//
// What the program says of itself, or is seen to say: marks, ranges, snapshots that it wants. None
// of them starts a recording.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_RECORD_NOTE_H_
#define GMT_PRELOAD_RECORD_NOTE_H_

#include <stdint.h>

#include <string_view>

#include "preload/process/process.h"

namespace gmt::preload {

void RecordMark(Process* p, std::string_view name, uint64_t index);

// Returns the number that ends it: that of its name and one of its own.
uint64_t BeginRange(Process* p, std::string_view name);
void EndRange(Process* p, uint64_t range);

// Recorded as it is now, by the collector, as soon as that gets there.
void AskForSnapshot(Process* p, std::string_view name);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_NOTE_H_
