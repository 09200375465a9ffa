// interop/rmm_log/rmm_log.h
//
// Converts the log of RMM's logging_resource_adaptor to a recording.
//
//   log                                                           recording
//   Thread,Time,Action,Pointer,Size,Stream
//   812,15:47:02.841961,allocate,0x10012400000,1048576,0          ALLOC of a block of heap "rmm"
//   812,15:47:02.841977,free,0x10012400000,1048576,0              FREE
//   812,15:47:02.842104,allocate failure,(nil),1099511627776,0    ALLOC_FAILED
//
// The log has neither stacks nor devices nor dates: the first event is at time 0, and a time of day
// that is more than 12 hours earlier than the one before is of the next day. Sizes are those that
// the program asked the adaptor for. A last line without a line end (its writer was killed) is left
// out, with a note; any other line that is not an event is an error with its number.
//
// Memory: a batch of events. Thread safety: one thread at a time.

#ifndef GMT_INTEROP_RMM_LOG_RMM_LOG_H_
#define GMT_INTEROP_RMM_LOG_RMM_LOG_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "format/byte_source.h"
#include "format/definitions_builder.h"
#include "format/recording_reader.h"
#include "interop/event_log/event_log.h"

namespace gmt::interop {

// Header.imported_from of the recording.
inline constexpr char kRmmLogImport[] = "RMM log";

// Passes the recording to the visitor, without a header. IDs are those of `definitions`, which is
// updated before the visitor is called. `name` stands for the path in messages. *is_whole becomes
// false if the last line has no line end.
absl::Status ReadRmmLog(format::ByteSource& log, absl::string_view name,
                        format::DefinitionsBuilder& definitions, format::RecordingVisitor& visitor,
                        Notes* notes, bool* is_whole);

// Returns whether the first line of the file is that of a log of RMM.
bool LooksLikeRmmLog(absl::string_view first_bytes);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_RMM_LOG_RMM_LOG_H_
