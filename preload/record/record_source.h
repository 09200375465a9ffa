// preload/record/record_source.h

#ifndef GMT_PRELOAD_RECORD_RECORD_SOURCE_H_
#define GMT_PRELOAD_RECORD_RECORD_SOURCE_H_

#include <string_view>

#include "preload/process/process.h"

namespace gmt::preload {

// How one of the ways to know things is, where that was never otherwise: no event.
void NoteSource(Process* p, session::Fact fact, std::string_view status);

// An event: from now on that is how one of the ways to know things is. Thread safety: any thread.
void RecordSource(Process* p, std::string_view source, std::string_view status);
// The same, and the fact that says how it is now.
void RecordSource(Process* p, session::Fact fact, std::string_view source, std::string_view status);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_RECORD_SOURCE_H_
