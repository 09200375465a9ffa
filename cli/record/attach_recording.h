// cli/record/attach_recording.h
//
// AttachRecording: one process that is being attached to: the door that was found or made, the wish, the
// collector. What it has asked for goes on when the object goes; Cancel() and End() end it.
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
#include "collector/inject/target_info.h"

namespace gmt::cli {

class AttachRecording {
 public:
  // Asks the process to be recorded, by `text` (keys of GPUMEMTRACE), and starts a collector. Where the
  // process has no door yet, the library is brought into it.
  static absl::StatusOr<std::unique_ptr<AttachRecording>> Begin(const AttachOptions& options,
                                                                const std::string& text, pid_t pid);

  pid_t pid() const { return pid_; }
  const std::string& output() const { return output_->path(); }
  // As its collector's control socket is found (collector/control/socket_path.h).
  std::string session() const;
  // The process records, and the collector is at work on it.
  bool HasBegun() const;
  // Why there is no reason to wait any more; OK while there is.
  absl::Status Problem();

  // Takes the wish back. Of several: first that of each, then End().
  void Withdraw();
  // The same, and waits for the collector. Whether the recording is complete.
  bool End();
  // The same; what has recorded nothing leaves no file.
  void Cancel();
  bool HasEnded() { return collector_->HasEnded(); }
  // What its collector said on stderr.
  std::string Complaint() { return collector_->Complaint(); }

 private:
  static absl::StatusOr<std::unique_ptr<AttachRecording>> Ask(const AttachOptions& options,
                                                              const std::string& text,
                                                              const inject::TargetInfo& target,
                                                              const ClaimedOutput& output);
  AttachRecording(pid_t pid, std::unique_ptr<AttachedSession> session,
                  std::unique_ptr<CollectorProcess> collector, uint32_t number);
  pid_t pid_;
  std::unique_ptr<ClaimedOutput> output_;
  std::unique_ptr<AttachedSession> session_;
  std::unique_ptr<CollectorProcess> collector_;
  uint32_t number_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_ATTACH_RECORDING_H_
