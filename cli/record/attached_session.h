// cli/record/attached_session.h
//
// AttachedSession: the session of a running process from the view of an attaching program: the
// attach fields (session/layout.h, Control), and the lock that shows who uses it.
//
// Thread safety: one thread at a time. Other processes may change the fields at any time.

#ifndef GMT_CLI_RECORD_ATTACHED_SESSION_H_
#define GMT_CLI_RECORD_ATTACHED_SESSION_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collector/inject/target_info.h"
#include "session/session_file.h"

namespace gmt::cli {

class AttachedSession {
 public:
  // Returns the session of this process, which may run in a container. NOT_FOUND if it has none.
  static absl::StatusOr<std::unique_ptr<AttachedSession>> OfProcess(
      const inject::TargetInfo& target);
  // `path` is the path as seen by this program.
  static absl::StatusOr<std::unique_ptr<AttachedSession>> Open(const std::string& path,
                                                               const inject::TargetInfo& target);
  ~AttachedSession();
  AttachedSession(const AttachedSession&) = delete;
  AttachedSession& operator=(const AttachedSession&) = delete;

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }  // of the file; valid while this object exists
  session::Control& control() const { return session_.map.control(); }
  // False if the process is recorded from its first GPU call to its end.
  bool has_attach_gate() const;
  // Returns whether the library was injected into the running process. It then stops intercepting
  // calls at a detach, and is called again for the next attach.
  bool is_injected() const;
  // Returns whether the process's calls bypass the injected library. A request is then not seen
  // until the library is called again.
  bool is_bypassed() const;
  // Returns whether there is an attach without a detach.
  bool is_attached() const;
  // Returns whether a collector or another attach is using the session.
  bool is_in_use() const;
  // Returns the path of the recording from the collector's command line, otherwise the one that the
  // process announced.
  std::string Recording() const;

  // Asks the process to record. Returns the number of the attach.
  absl::StatusOr<uint32_t> Ask(const std::string& options);
  // The error of Ask() if the process still holds its last recording.
  absl::Status NotDetachedYet() const;
  // Withdraws the request with that number, if it is still the current one.
  void Withdraw(uint32_t number);
  // Like Withdraw(), for a recording without a collector to end it. Its memory is freed at once, or
  // by the process when it detaches.
  void WithdrawWithoutCollector(uint32_t number);

 private:
  AttachedSession(std::string path, int fd, session::OpenedSession session, pid_t pid)
      : path_(std::move(path)), fd_(fd), session_(session), pid_(pid) {}
  std::string path_;
  int fd_;
  session::OpenedSession session_;
  pid_t pid_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_ATTACHED_SESSION_H_
