// preload/record/note.h
//
// Records what the program announces, or is seen to announce: marks, ranges, and snapshot requests.
// None of these starts a recording.
//
// Thread safety: all functions may be called from any thread.

#ifndef GMT_PRELOAD_RECORD_NOTE_H_
#define GMT_PRELOAD_RECORD_NOTE_H_

#include <stdint.h>

#include <string_view>

#include "preload/process/process.h"

namespace gmt::preload {

void RecordMark(Process* p, std::string_view name, uint64_t index);

// Returns the number that ends the range: it encodes the name's id and a running number.
uint64_t BeginRange(Process* p, std::string_view name);
void EndRange(Process* p, uint64_t range);

// Requests a snapshot, which the collector takes as soon as it reads the request.
void AskForSnapshot(Process* p, std::string_view name);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_NOTE_H_
