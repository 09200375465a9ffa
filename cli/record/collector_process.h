// cli/record/collector_process.h
//
// CollectorProcess: a gpumemtrace-collector that this program starts on a session. It outlives this
// program, and is in its own terminal session so that no terminal ends it.
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_RECORD_COLLECTOR_PROCESS_H_
#define GMT_CLI_RECORD_COLLECTOR_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/record/attached_session.h"
#include "cli/record/claimed_output.h"

namespace gmt::cli {

class CollectorProcess {
 public:
  // `session` is the open file that was verified to be the target's; its path may lead elsewhere by
  // now. `output` is passed to the collector with its lock. `target` is the recorded process's PID
  // here, which may differ from the one in its session.
  static absl::StatusOr<std::unique_ptr<CollectorProcess>> Start(const AttachedSession& session,
                                                                 const ClaimedOutput& output,
                                                                 pid_t target);
  ~CollectorProcess();
  CollectorProcess(const CollectorProcess&) = delete;
  CollectorProcess& operator=(const CollectorProcess&) = delete;

  // Returns whether the collector has ended. exit_code() and Complaint() are valid from then on.
  bool HasEnded();
  bool WaitForEnd(std::chrono::milliseconds patience);
  pid_t pid() const { return pid_; }
  int exit_code() const { return exit_code_; }
  // Returns what the collector printed on stderr.
  std::string Complaint();

 private:
  CollectorProcess(pid_t pid, int complaints) : pid_(pid), complaints_(complaints) {}
  pid_t pid_;
  int complaints_;
  bool ended_ = false;
  int exit_code_ = 0;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_COLLECTOR_PROCESS_H_
