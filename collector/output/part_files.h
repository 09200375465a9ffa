// collector/output/part_files.h
//
// PartFiles: the files of a recording in parts (format/parts.h). Creates the next part, gives it
// the recording's name and drops the oldest.
//
// A complete file exists under the recording's name at any time: the next part is written beside it
// and is renamed to that name as soon as it can be read. A collector that is killed in between
// leaves a file whose name ends in ".next".
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

  // `fd`: the file of the first part, open and locked; remains the caller's. `calls`: makes the
  // system calls of the next parts.
  explicit PartFiles(int fd, Calls calls = CallsOfFile) : current_(fd), calls_(std::move(calls)) {}
  ~PartFiles();
  PartFiles(const PartFiles&) = delete;
  PartFiles& operator=(const PartFiles&) = delete;

  // Creates a file for the next part under a name that no reader looks for. Returns
  // FAILED_PRECONDITION if the recording is not a file with a name (a pipe, a deleted file).
  absl::StatusOr<std::unique_ptr<OutputFile>> Create();
  // Gives the recording's name to the file created last; the file that has it becomes part
  // `number`. REQUIRES: both are completely written, and the latter is not written to any more.
  absl::Status Publish(uint32_t number);
  // Removes a part; does nothing if it is gone already.
  void Remove(uint32_t number);

  // The descriptor of the newest part that has the recording's name.
  int fd() const { return current_; }

 private:
  int current_, next_ = -1;
  bool owns_current_ = false;
  const Calls calls_;
  std::string path_;  // of the recording, from the first Create() on
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_PART_FILES_H_
