// interop/open_input.h
//
// Opens whatever a reading verb may be given - a recording, an event log, a PyTorch memory
// snapshot, a log of RMM, a JAX device memory profile - by its content, so that later code is
// independent of the format. Nothing from the file is ever executed.
//
// Thread safety: one thread at a time for one Input.

#ifndef GMT_INTEROP_OPEN_INPUT_H_
#define GMT_INTEROP_OPEN_INPUT_H_

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
#include "format/time_range.h"

namespace gmt::interop {

class Input {
 public:
  virtual ~Input() = default;

  // Reads everything. Call it once. A visitor may look up definitions while it reads, but symbols
  // are complete only afterwards.
  virtual absl::Status Read(format::RecordingVisitor& visitor,
                            format::Returns returns = format::Returns::kCompleted) = 0;
  // Like Read(), but may skip what an answer about `range` does not need
  // (format/recording_reader.h).
  virtual absl::Status ReadRange(format::RecordingVisitor& visitor,
                                 const format::TimeRange& /*range*/) {
    return Read(visitor);
  }
  // Returns the range of which events have been read.
  virtual format::TimeRange range_read() const { return {}; }
  // Reads everything, but only counts events; may be called in place of Read(). Returns false, and
  // has delivered only a part, if they have to be read (format/recording_reader.h).
  virtual absl::StatusOr<bool> ReadCounts(format::RecordingVisitor& /*visitor*/) { return false; }
  virtual const format::Definitions& definitions() const = 0;
  // Makes all text of the file safe to print (format/printable.h). Call it before Read().
  virtual void MakeStringsPrintable() = 0;
  // Returns the share that has been read, 0 to 1, for use by a visitor during Read(). 0 if unknown.
  virtual double share_read() const { return 0; }

  // After Read(): returns whether nothing is damaged and the file has the end of a finished file.
  virtual bool complete() const = 0;
  // After Read(): returns what a user should know, such as damage or truncation. Each note is a
  // sentence with the command that fixes it.
  virtual std::vector<std::string> notes() const = 0;
};

// A file that has been opened and recognised. It may be read several times, also if it is a pipe.
struct InputFile {
  enum class Format { kRecording, kEventLog, kTorchSnapshot, kRmmLog, kJaxProfile };

  std::string path;  // for messages
  Format format;
  std::shared_ptr<format::ByteSource> source;  // a recording includes its older parts
};

// Recognises a file by its first bytes. Fails with a message that names the file if it cannot be
// read or its format is unknown. Of a pipe in an unknown format only the first bytes are read.
absl::StatusOr<InputFile> OpenInputFile(absl::string_view path);

absl::StatusOr<std::unique_ptr<Input>> OpenInput(const InputFile& file);
// Both in one step.
absl::StatusOr<std::unique_ptr<Input>> OpenInput(absl::string_view path);

// Converts a log or a profile, and passes everything to the visitor. IDs are those of
// `definitions`, which is updated before the visitor is called. *is_whole becomes false if the file
// is truncated. REQUIRES: the file is neither a recording nor a snapshot of PyTorch.
absl::Status ConvertLog(const InputFile& file, format::DefinitionsBuilder& definitions,
                        format::RecordingVisitor& visitor, std::vector<std::string>* notes,
                        bool* is_whole);
// Returns the header that ConvertLog() passes on.
absl::StatusOr<Header> HeaderOfLog(const InputFile& file);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_OPEN_INPUT_H_
