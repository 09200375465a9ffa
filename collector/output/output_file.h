// collector/output/output_file.h
//
// OutputFile: the file that the recording is written to. A full disk does not end a recording: what
// could not be written is kept in memory and written first when there is space again. While
// stalled(), the collector reads nothing from the session: its ring keeps the newest events and its
// live table keeps the state. The traced process is not affected. What the ring loses meanwhile
// becomes a gap.
//
// A file that is deleted or truncated while it is written still accepts bytes, but they are lost to
// readers. Check() detects this, so that the recording can be started again in another file.
//
// Errors: Append() never fails; Sync() and Retry() fail while bytes are kept back.
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_OUTPUT_FILE_H_
#define GMT_COLLECTOR_OUTPUT_OUTPUT_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/recording_writer.h"

namespace gmt::collector {

// The system calls of the output; tests inject faults here. Each returns what its namesake returns:
// -1 with errno set if it fails.
struct OutputCalls {
  struct State {
    uint64_t size = 0;
    bool has_name = true;
    bool is_file = false;  // else it is a pipe or a device, whose state is unknown
  };
  std::function<ssize_t(const char* bytes, size_t size)> write;
  std::function<int(State* state)> stat = [](State*) { return 0; };
  std::function<int()> sync = [] { return 0; };
};

// Returns the system calls on `fd`, which remains the caller's.
OutputCalls CallsOfFile(int fd);

class OutputFile : public format::Sink {
 public:
  using Write = decltype(OutputCalls::write);

  explicit OutputFile(OutputCalls calls) : calls_(std::move(calls)) {}
  explicit OutputFile(Write write) { calls_.write = std::move(write); }
  // Writes to `fd`, which remains the caller's.
  explicit OutputFile(int fd) : OutputFile(CallsOfFile(fd)) {}

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Sync() override { return Retry(); }

  // Writes what is kept back. Returns RESOURCE_EXHAUSTED, or another code with errno's text, if it
  // cannot.
  absl::Status Retry();
  bool stalled() const { return !kept_.empty(); }
  // How often writing began to fail, and errno's text of the last failure.
  int stalls() const { return stalls_; }
  const std::string& stall_reason() const { return stall_reason_; }

  // Everything appended, written or kept back.
  uint64_t size() const { return written_ + kept_.size(); }

  // Returns DATA_LOSS, saying what happened, if the file was deleted or has lost written bytes.
  absl::Status Check();
  // Syncs what was written to disk.
  absl::Status SyncToDisk();

 private:
  OutputCalls calls_;
  std::string kept_, stall_reason_;
  uint64_t written_ = 0;
  int stalls_ = 0;
};

// A new file in which to continue the recording of `fd`: under the same name if that is free now,
// otherwise as run.1.gmt, run.2.gmt ... It is locked and has the old file's mode.
struct NextOutput {
  int fd = -1;
  std::string path;
};
absl::StatusOr<NextOutput> CreateNextOutput(int fd);

// Returns the path under which `fd` was opened; empty if it has none.
std::string PathOfDescriptor(int fd);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_OUTPUT_FILE_H_
