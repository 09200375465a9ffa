// format/tail_reader.h
//
// TailReader: reads a recording while it is being written. Each call delivers what has become
// complete since the previous one, in the same order and with the same ids as RecordingReader
// delivers for the final file. Nothing is read twice. When a new part takes over the file name,
// reading continues with it.
//
//   auto tail = TailReader::Open("run.gmt");
//   while (...) {
//     absl::Status status = (*tail)->ReadMore(visitor);
//     ...                        // visitor, (*tail)->definitions(): all that is in the file by now
//   }
//
// Errors: DATA_LOSS if the file no longer continues what was read (it was truncated or replaced by
// another recording): start over with a new TailReader and a new visitor. NOT_FOUND while no file
// has the name. Otherwise, errors of reading and of the visitor. Thread safety: one thread at a
// time.

#ifndef GMT_FORMAT_TAIL_READER_H_
#define GMT_FORMAT_TAIL_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/definitions.h"
#include "format/recording_reader.h"

namespace gmt::format {

class TailReader {
 public:
  // Opens the recording together with its older parts.
  static absl::StatusOr<std::unique_ptr<TailReader>> Open(const std::string& path);
  ~TailReader();

  // Makes all text of the recording safe to print (format/printable.h). Call it before ReadMore().
  void MakeStringsPrintable();

  // Reads to the end of what is complete now.
  absl::Status ReadMore(RecordingVisitor& visitor);

  // Grows; ids do not change.
  const Definitions& definitions() const;
  // Returns whether the last part has its index and footer and nothing was damaged. For a
  // recording in parts this may be true for a moment before the next part begins.
  bool complete() const;
  uint64_t bytes() const;
  // Returns the bytes of what has been or is just being delivered.
  uint64_t bytes_taken() const;
  // Changes when frames get names.
  uint64_t names_taken() const;
  const std::vector<Damage>& damage() const;

 private:
  class Impl;
  explicit TailReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_TAIL_READER_H_
