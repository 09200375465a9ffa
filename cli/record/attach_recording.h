// cli/record/attach_recording.h
//
// AttachRecording: one process that is being attached to, with its session, the attach request and
// the collector. The recording continues when this object is destroyed; Cancel() and End() end it.
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_RECORD_ATTACH_RECORDING_H_
#define GMT_CLI_RECORD_ATTACH_RECORDING_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/record/attach_options.h"
#include "cli/record/attached_session.h"
#include "cli/record/claimed_output.h"
#include "cli/record/collector_process.h"
#include "collector/inject/running_program.h"
#include "collector/inject/target_info.h"

namespace gmt::cli {

class AttachRecording {
 public:
  // Asks the process to record with the options `text` (keys of GPUMEMTRACE), and starts a
  // collector. Injects the library if the process has no attach gate yet.
  static absl::StatusOr<std::unique_ptr<AttachRecording>> Begin(const AttachOptions& options,
                                                                const std::string& text, pid_t pid);

  pid_t pid() const { return pid_; }
  const std::string& output() const { return output_->path(); }
  // The session's name, by which the collector's control socket is found
  // (collector/sessions/socket_path.h).
  std::string session() const;
  // Returns whether the process records and its collector is attached to the session.
  bool HasBegun() const;
  // Returns why waiting for the begin is pointless, or OK if it is not.
  absl::Status Problem();

  // Withdraws the attach request. To end several recordings, call this for each, then End().
  void Withdraw();
  // Withdraws the request and waits for the collector. Returns whether the recording is complete.
  bool End();
  // Like End(), but removes the file if nothing was recorded.
  void Cancel();
  bool HasEnded() { return collector_->HasEnded(); }
  // Returns what the collector printed on stderr.
  std::string Complaint() { return collector_->Complaint(); }

 private:
  static absl::StatusOr<std::unique_ptr<AttachRecording>> Ask(const AttachOptions& options,
                                                              const std::string& text,
                                                              const inject::TargetInfo& target,
                                                              const ClaimedOutput& output);
  AttachRecording(pid_t pid, std::unique_ptr<AttachedSession> session,
                  std::unique_ptr<CollectorProcess> collector, uint32_t number);
  // Returns why the process's program will not record, or OK: the end of the process is left to the
  // collector to notice.
  absl::Status ProblemOfProgram() const;

  pid_t pid_;
  std::unique_ptr<inject::RunningProgram> program_;
  std::unique_ptr<ClaimedOutput> output_;
  std::unique_ptr<AttachedSession> session_;
  std::unique_ptr<CollectorProcess> collector_;
  uint32_t number_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_ATTACH_RECORDING_H_
