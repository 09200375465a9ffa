// collector/output_file.h
//
// OutputFile: where the recording goes. A full disk does not end a recording: what could not be
// written is kept in memory and written first when there is room again. While stalled() the
// collector reads nothing more from the session, whose ring keeps the newest history and whose live
// table keeps the state; the traced process notices nothing. What the ring lost meanwhile becomes a
// gap.
//
// Errors: Append() fails never, Sync() and Retry() as long as bytes are kept back.
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_FILE_H_
#define GMT_COLLECTOR_OUTPUT_FILE_H_

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "format/recording_writer.h"

namespace gmt::collector {

class OutputFile : public format::Sink {
 public:
  // As write(2): how many bytes were taken, or -1 with errno set. Tests put faults here.
  using Write = std::function<ssize_t(const char* bytes, size_t size)>;

  explicit OutputFile(Write write) : write_(std::move(write)) {}
  // Writes to `fd`, which stays the caller's.
  explicit OutputFile(int fd);

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Sync() override { return Retry(); }

  // Writes what is kept back. RESOURCE_EXHAUSTED, or another code with errno's text, while it
  // cannot.
  absl::Status Retry();
  bool stalled() const { return !kept_.empty(); }
  // How often writing began to fail.
  int stalls() const { return stalls_; }

 private:
  Write write_;
  std::string kept_;
  int stalls_ = 0;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_FILE_H_
