// collector/output/output_file.h
//
// OutputFile: where the recording goes. A full disk does not end a recording: what could not be
// written is kept in memory and written first when there is room again. While stalled() the
// collector reads nothing more from the session, whose ring keeps the newest history and whose live
// table keeps the state; the traced process notices nothing. What the ring lost meanwhile becomes a
// gap.
//
// A file that is deleted or cut while it is written goes on taking bytes that nobody will read:
// Check() tells, so that the recording can begin anew in another file.
//
// Errors: Append() fails never, Sync() and Retry() as long as bytes are kept back.
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

// Everything that the output asks of the operating system; tests put faults here. Each returns what
// its namesake does, -1 with errno set where it fails.
struct OutputCalls {
  struct State {
    uint64_t size = 0;
    bool has_name = true;
    bool is_file = false;  // else it is a pipe or a device, of which nothing can be said
  };
  std::function<ssize_t(const char* bytes, size_t size)> write;
  std::function<int(State* state)> stat = [](State*) { return 0; };
  std::function<int()> sync = [] { return 0; };
};

// Those of `fd`, which stays the caller's.
OutputCalls CallsOfFile(int fd);

class OutputFile : public format::Sink {
 public:
  using Write = decltype(OutputCalls::write);

  explicit OutputFile(OutputCalls calls) : calls_(std::move(calls)) {}
  explicit OutputFile(Write write) { calls_.write = std::move(write); }
  // Writes to `fd`, which stays the caller's.
  explicit OutputFile(int fd) : OutputFile(CallsOfFile(fd)) {}

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Sync() override { return Retry(); }

  // Writes what is kept back. RESOURCE_EXHAUSTED, or another code with errno's text, while it
  // cannot.
  absl::Status Retry();
  bool stalled() const { return !kept_.empty(); }
  // How often writing began to fail, and errno's text of the last time.
  int stalls() const { return stalls_; }
  const std::string& stall_reason() const { return stall_reason_; }

  // All that was appended, whether it is written or kept back.
  uint64_t size() const { return written_ + kept_.size(); }

  // DATA_LOSS where the file has lost its name or bytes that were written: what was done to it.
  absl::Status Check();
  // Makes what was written durable.
  absl::Status SyncToDisk();

 private:
  OutputCalls calls_;
  std::string kept_, stall_reason_;
  uint64_t written_ = 0;
  int stalls_ = 0;
};

// A file of its own for what follows, beside the one that `fd` was: under the same name where that
// is free now, else as run.1.gmt, run.2.gmt ... Locked, with the old one's mode.
struct NextOutput {
  int fd = -1;
  std::string path;
};
absl::StatusOr<NextOutput> CreateNextOutput(int fd);

// The path that `fd` was opened under; empty where it has none.
std::string PathOfDescriptor(int fd);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_OUTPUT_FILE_H_
