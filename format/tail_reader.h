// format/tail_reader.h
//
// TailReader: reads a recording while it is written. Each call hands out what became whole since the
// last one, in the order and with the ids that RecordingReader has for the file in the end; nothing is
// read twice. New parts are gone on with when they take the file's name.
//
//   auto tail = TailReader::Open("run.gmt");
//   while (...) {
//     absl::Status status = (*tail)->ReadOn(visitor);
//     ...                        // visitor, (*tail)->definitions(): all that is in the file by now
//   }
//
// Errors: DATA_LOSS where the file no longer goes on with what was read (it was cut, or replaced by
// another recording): begin with a new TailReader and a new visitor. NOT_FOUND while nothing has the
// file's name. Else what reading or the visitor says.
// Thread safety: one thread at a time.

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
  // With the older parts that lie beside it.
  static absl::StatusOr<std::unique_ptr<TailReader>> Open(const std::string& path);
  ~TailReader();

  // Until the end of what is whole by now.
  absl::Status ReadOn(RecordingVisitor& visitor);

  // Grows; ids stay what they were.
  const Definitions& definitions() const;
  // The last part has its index and footer, and nothing was damaged. Of a recording in parts that
  // may be so for a moment in which the next one is about to begin.
  bool complete() const;
  uint64_t bytes() const;
  // Of these, what has been handed out, with what is being handed out.
  uint64_t bytes_taken() const;
  // Changes when frames got names.
  uint64_t names_taken() const;
  const std::vector<Damage>& damage() const;

 private:
  class Impl;
  explicit TailReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_TAIL_READER_H_
