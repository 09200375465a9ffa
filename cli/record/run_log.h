// cli/record/run_log.h
//
// RunLog: which processes of one run are recorded, and where. Each traced process appends a line to
// a file that `gpumemtrace run` creates. Afterwards the program knows which recordings to wait for
// and to report on.
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_RECORD_RUN_LOG_H_
#define GMT_CLI_RECORD_RUN_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/record/child_process.h"

namespace gmt::cli {

// One traced process.
struct RunEntry {
  int64_t pid = 0;
  std::string session;  // path of its shared memory; empty if that has no name
  std::string output;   // absolute path of its recording
};

class RunLog {
 public:
  // Creates an empty log that only this user can read.
  static absl::StatusOr<RunLog> Create();
  RunLog(RunLog&& other) noexcept;
  ~RunLog();  // removes the file

  const std::string& run_id() const { return run_id_; }
  const std::string& path() const { return path_; }

  std::vector<RunEntry> Read() const;

 private:
  RunLog(std::string run_id, std::string path)
      : run_id_(std::move(run_id)), path_(std::move(path)) {}

  std::string run_id_;
  std::string path_;
};

// Passes to the collector of a process how that process ended, which only its parent knows
// reliably.
void NoteExit(const RunEntry& entry, const ChildExit& exit);

// Returns whether the recording is being written right now.
bool IsBeingWritten(const std::string& output);

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_RUN_LOG_H_
