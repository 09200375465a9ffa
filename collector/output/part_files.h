// collector/output/part_files.h
//
// PartFiles: the files of a recording in parts (format/parts.h), and what is done to them: begin the
// next one, give it the recording's name, drop the oldest.
//
// There is a whole file under the recording's name at every instant: the next part is written beside
// it, and takes the name by a rename when it can be read. A collector that is killed in between
// leaves a file that ends in ".next".
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_PART_FILES_H_
#define GMT_COLLECTOR_OUTPUT_PART_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collector/output/output_file.h"

namespace gmt::collector {

class PartFiles {
 public:
  using Calls = std::function<OutputCalls(int fd)>;

  // `fd`: the first part's file, open and locked; stays the caller's. `calls`: how the files of the
  // next ones are written.
  explicit PartFiles(int fd, Calls calls = CallsOfFile) : current_(fd), calls_(std::move(calls)) {}
  ~PartFiles();
  PartFiles(const PartFiles&) = delete;
  PartFiles& operator=(const PartFiles&) = delete;

  // A file for the next part, without a name that a reader looks at. FAILED_PRECONDITION where the
  // recording is no file with a name (a pipe, a file that was deleted).
  absl::StatusOr<std::unique_ptr<OutputFile>> Create();
  // The file created last takes the recording's name; what has it becomes part `number`. REQUIRES:
  // both are written whole, and nobody writes the latter any more.
  absl::Status Publish(uint32_t number);
  // A part that is gone already is none to remove.
  void Remove(uint32_t number);

  // Of the newest part that has the recording's name.
  int fd() const { return current_; }

 private:
  int current_, next_ = -1;
  bool owns_current_ = false;
  const Calls calls_;
  std::string path_;  // of the recording, from the first Create() on
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_PART_FILES_H_
