// cli/record/collector_process.h
//
// CollectorProcess: a gpumemtrace-collector that this program starts on a session, and that goes on when
// this program has ended: in a session of its own, so that no terminal ends it.
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
  // `session`: the very file that was found to be the target's; its path may lead elsewhere by now.
  // `output`: the file at that path, which the collector takes over with its lock.
  // `target`: the process that is recorded, by its number here; it may have another one in its session.
  static absl::StatusOr<std::unique_ptr<CollectorProcess>> Start(const AttachedSession& session,
                                                                 const ClaimedOutput& output,
                                                                 pid_t target);
  ~CollectorProcess();
  CollectorProcess(const CollectorProcess&) = delete;
  CollectorProcess& operator=(const CollectorProcess&) = delete;

  // Whether it has ended; exit_code() and Complaint() hold from then on.
  bool HasEnded();
  bool WaitForEnd(std::chrono::milliseconds patience);
  pid_t pid() const { return pid_; }
  int exit_code() const { return exit_code_; }
  // What it said on stderr.
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
