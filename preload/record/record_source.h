// preload/record/record_source.h

#ifndef GMT_PRELOAD_RECORD_RECORD_SOURCE_H_
#define GMT_PRELOAD_RECORD_RECORD_SOURCE_H_

#include <string_view>

#include "preload/process/process.h"

namespace gmt::preload {

// Sets the status of an event source that has not changed since start; writes no event.
void SetSourceStatus(Process* p, session::Fact fact, std::string_view status);

// Records an event: the status of that event source from now on. Thread safety: any thread.
void RecordSource(Process* p, std::string_view source, std::string_view status);
// Same, and updates the fact that holds the current status.
void RecordSource(Process* p, session::Fact fact, std::string_view source, std::string_view status);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_RECORD_SOURCE_H_
