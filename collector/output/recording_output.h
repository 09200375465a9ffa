// collector/output/recording_output.h
//
// RecordingOutput: the files of one recording: the file that is written now, the previous part
// until it is completely written, and the older parts of a bounded history (history.h).
//
//   BeginPart()   the next part is written from now on, and the previous one is completed
//   IsWritable()  gives the recording's name to the next part when both are on disk
//   DropParts()   drops what exceeds the limits, oldest first
//
// Nothing may be drained from the session while IsWritable() returns false. A full disk is handled
// as without parts, but only after the older parts have been dropped to make room.
//
// Ownership: the files that are written belong to the recorder. `clock` and `parts` must outlive
// this.
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_RECORDING_OUTPUT_H_
#define GMT_COLLECTOR_OUTPUT_RECORDING_OUTPUT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collector/clock.h"
#include "collector/output/history.h"
#include "collector/output/output_file.h"
#include "collector/output/part_files.h"

namespace gmt::collector {

class RecordingOutput {
 public:
  // Creates the file in which to continue after the present one was deleted or truncated.
  using CreateNext = std::function<absl::StatusOr<std::unique_ptr<OutputFile>>()>;

  // `create_next` may be empty. `parts`: null if the history is not bounded, whatever the limits.
  RecordingOutput(OutputFile* file, Clock* clock, CreateNext create_next, PartFiles* parts,
                  const HistoryLimits& limits);

  const OutputFile& file() const { return *file_; }
  bool has_parts() const { return history_.has_value(); }

  // Returns whether everything appended so far has been written. Tries to write the rest first.
  bool IsWritable();
  // Completes a recording whose last write had this status: writes what was kept back, for up to
  // `patience_ns`, and gives the newest part its name. Returns the new status.
  absl::Status Complete(absl::Status status, uint64_t patience_ns);

  // Returns DATA_LOSS if the file was deleted or has lost written bytes, now or earlier.
  absl::Status Check();
  absl::Status CheckIfDue();  // at most once per second
  // Returns the file in which to continue after DATA_LOSS; null if there is none.
  std::unique_ptr<OutputFile> TakeNext() { return std::move(next_); }
  bool has_next() const { return next_ != nullptr; }

  // Returns the reason to end the newest part now; null if there is none. `bytes` and `has_events`
  // describe it.
  const char* WhyToEndPart(uint64_t bytes, bool has_events);
  // Returns the file of the next part; null if it cannot be created now.
  std::unique_ptr<OutputFile> CreatePart();
  uint32_t next_part() const { return history_->newest() + 1; }
  // `file` is written from now on, and begins with `base_bytes`; `ending` is the previous one.
  void BeginPart(OutputFile* file, std::unique_ptr<format::Sink> ending, uint64_t base_bytes);

  // Returns what readers must know: `first`, and what went wrong so far; "" if nothing is known.
  std::string Note(const std::string& first) const;

 private:
  absl::Status Retry();
  absl::Status PublishPart();
  void DropParts();
  bool DropOldestPart();

  OutputFile* file_;
  Clock* const clock_;
  const CreateNext create_next_;
  PartFiles* const parts_;
  std::optional<History> history_;
  uint64_t checked_ns_ = 0;
  std::string problem_;  // what happened to the file that is still written to
  std::unique_ptr<OutputFile> next_;
  std::unique_ptr<format::Sink> ending_;  // the previous part, until it is completely written
  OutputFile* ending_file_ = nullptr;
  bool unpublished_ = false;     // the newest part does not have the recording's name yet
  uint64_t parts_retry_ns_ = 0;  // when to try again what failed
  std::string parts_problem_;    // the latest reason why the history could not be bounded
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_RECORDING_OUTPUT_H_
