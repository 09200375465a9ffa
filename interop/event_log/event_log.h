// interop/event_log/event_log.h
//
// The event log: a recording as JSON lines, one object per line, in one-to-one correspondence with
// the events of proto/gmt.proto. `gpumemtrace cat --json` prints it and `gpumemtrace import` reads
// it, without loss in either direction. docs/format.md lists every kind with its keys.
//
//   {"kind":"stack","id":7,"frames":[{"function":"forward","file":"model.py","line":88}]}
//   {"kind":"alloc","t_ns":12,"heap":"driver","address":140011122688,"size":2097152,"stack":7}
//
// Reading executes nothing and trusts nothing: a line is valid JSON, or an error with its number.
// Unknown keys are ignored, and those of events are named in a note. Unknown kinds are kept as
// text. A last line without a line end (its writer was killed) is left out, with a note.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_EVENT_LOG_EVENT_LOG_H_
#define GMT_INTEROP_EVENT_LOG_EVENT_LOG_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/byte_source.h"
#include "format/definitions.h"
#include "format/definitions_builder.h"
#include "format/recording_reader.h"

namespace gmt::interop {

// What a user should know although it is not an error.
using Notes = std::vector<std::string>;

// Reads `log` up to the size that it had when it was opened. The visitor gets what a
// RecordingReader of the same recording would pass to it. IDs are those of `definitions`, which is
// updated before the visitor is called. `name` stands for the path in messages. *is_whole becomes
// false if the last line has no line end.
absl::Status ReadEventLog(format::ByteSource& log, absl::string_view name,
                          format::DefinitionsBuilder& definitions,
                          format::RecordingVisitor& visitor, Notes* notes,
                          bool* is_whole = nullptr);

// Returns the header for a recording into which a log is imported. It is taken from the log's first
// line if that is a header.
absl::StatusOr<Header> ReadEventLogHeader(format::ByteSource& log);

// Returns whether a file that begins like this is an event log: JSON whose first line is an object
// with a "kind".
bool LooksLikeEventLog(absl::string_view first_bytes);

// Prints a recording as an event log while it is read.
class EventLogWriter : public format::RecordingVisitor {
 public:
  using Put = std::function<absl::Status(absl::string_view line)>;  // without the line end

  // `definitions` must outlive the writer. For frames to have names, it must know all symbols
  // before the first event: read a recording once before printing it.
  EventLogWriter(const format::Definitions* definitions, Put put);
  ~EventLogWriter() override;

  absl::Status OnHeader(const Header& header) override;
  absl::Status OnEvents(const format::EventBatch& batch) override;
  absl::Status OnSnapshot(const Snapshot& snapshot) override;
  absl::Status OnFacts(const Facts& facts) override;
  absl::Status OnLosses(const Losses& losses) override;
  // Prints what was held back. Call it after all other functions.
  absl::Status End();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_EVENT_LOG_EVENT_LOG_H_
