// interop/event_log/event_log.h
//
// The event log: a recording as JSON lines, one object per line, one to one with the events of
// proto/gmt.proto. `gpumemtrace cat --json` prints it and `gpumemtrace import` reads it; nothing is
// lost on the way there and back. docs/format.md lists every kind with its keys.
//
//   {"kind":"stack","id":7,"frames":[{"function":"forward","file":"model.py","line":88,"language":"
// python"}]}
//   {"kind":"alloc","t_ns":12,"heap":"driver","address":140011122688,"size":2097152,"stack":7}
//
// Reading runs nothing and trusts nothing: a line is JSON or an error with its number. Unknown keys
// are ignored, those of events named in a note; unknown kinds are kept as text; a last line without its
// end (the writer was killed) is left out and noted.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_EVENT_LOG_EVENT_LOG_H_
#define GMT_INTEROP_EVENT_LOG_EVENT_LOG_H_

#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/definitions.h"
#include "format/recording_reader.h"
#include "format/recording_writer.h"

namespace gmt::interop {

// What a user should know although it is no error.
using Notes = std::vector<std::string>;

// Reads `log` to its end. The visitor gets what a RecordingReader of the same recording would hand
// it; its ids are those of `definitions`, which has them before the visitor does. `name` stands for
// the path in messages. *is_whole becomes false if the last line has no end.
absl::Status ReadEventLog(std::istream& log, absl::string_view name,
                          format::DefinitionsBuilder& definitions,
                          format::RecordingVisitor& visitor, Notes* notes,
                          bool* is_whole = nullptr);

// The header for a recording that a log is imported into; from the log's first line, where that is
// one.
absl::StatusOr<Header> ReadEventLogHeader(absl::string_view path);

// Adds all that the log at `path` holds to `writer`, whose header should be ReadEventLogHeader()'s.
// Does not finish it.
absl::Status ImportEventLog(absl::string_view path, format::RecordingWriter& writer, Notes* notes);

// Whether a file that begins so is an event log: JSON whose first line is an object with a "kind".
bool LooksLikeEventLog(absl::string_view first_bytes);

// Prints a recording as an event log while it is read.
class EventLogWriter : public format::RecordingVisitor {
 public:
  using Put = std::function<absl::Status(absl::string_view line)>;  // without the line's end

  // `definitions` must outlive the writer, and must know all symbols before the first event where
  // frames are to have names: read a recording once before it is printed.
  EventLogWriter(const format::Definitions* definitions, Put put);
  ~EventLogWriter() override;

  absl::Status OnHeader(const Header& header) override;
  absl::Status OnEvents(const format::EventBatch& batch) override;
  absl::Status OnSnapshot(const Snapshot& snapshot) override;
  absl::Status OnFacts(const Facts& facts) override;
  absl::Status OnLosses(const Losses& losses) override;
  // Prints what waited for more. Call it after the last of the others.
  absl::Status End();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_EVENT_LOG_EVENT_LOG_H_
