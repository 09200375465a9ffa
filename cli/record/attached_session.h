// cli/record/attached_session.h
//
// AttachedSession: the session of a running process as who attaches to it sees it: its words of attach
// (session/layout.h, Control), and the lock that says who is at work on it.
//
// Thread safety: one thread at a time; other processes may change the words at any time.

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
  // The session of this process, which may live in a container. NOT_FOUND where it has none.
  static absl::StatusOr<std::unique_ptr<AttachedSession>> OfProcess(
      const inject::TargetInfo& target);
  // `path`: as this program sees it.
  static absl::StatusOr<std::unique_ptr<AttachedSession>> Open(const std::string& path,
                                                               const inject::TargetInfo& target);
  ~AttachedSession();
  AttachedSession(const AttachedSession&) = delete;
  AttachedSession& operator=(const AttachedSession&) = delete;

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }  // of the file, for as long as this is
  session::Control& control() const { return session_.map.control(); }
  // False: the process is recorded from its first call of the GPU to its end.
  bool has_door() const;
  // The library was brought into the running process. It stops catching calls at a detach, and is
  // called again to begin anew.
  bool is_brought() const;
  // Its calls lead past that library: a wish is not seen until it is called again.
  bool is_passed_by() const;
  // Somebody has attached and not yet detached.
  bool is_attached() const;
  // A collector, or another attach, is at work on it.
  bool is_taken() const;
  // Where its recording goes, by the command line of the collector at work; else what the process announced.
  std::string Recording() const;

  // Asks the process to be recorded; returns the number of the attach.
  absl::StatusOr<uint32_t> Ask(const std::string& options);
  // Why Ask() is refused where the process still holds on to its last recording.
  absl::Status NotLetGo() const;
  // Takes the wish with that number back, if it is still what is wished for.
  void Withdraw(uint32_t number);
  // The same where no collector ends the recording: its memory is taken away at once, or by the process when
  // it lets go.
  void WithdrawForNobody(uint32_t number);

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
