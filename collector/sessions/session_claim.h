// collector/sessions/session_claim.h
//
// SessionClaim: a session opened by the one collector that may read it. Two readers would write one
// recording each and both would remove the session; a lock on the session's file, held as long as
// the claim, keeps the second one out. The lock goes with its process, so a collector that was
// killed leaves no trace of it.
//
// What lies behind the info section of a session with a door may be read from WaitUntilRecorded() on;
// the claim's end takes that memory away again, once the process writes to it no more.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_SESSIONS_SESSION_CLAIM_H_
#define GMT_COLLECTOR_SESSIONS_SESSION_CLAIM_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collector/clock.h"
#include "collector/sessions/target.h"
#include "session/session_file.h"

namespace gmt::collector {

class SessionClaim {
 public:
  // `fd` is a session open for reading and writing; it stays the caller's. FAILED_PRECONDITION
  // where it is no session that this release can read, ALREADY_EXISTS where another collector reads
  // it.
  static absl::StatusOr<std::unique_ptr<SessionClaim>> Take(int fd);
  ~SessionClaim();
  SessionClaim(const SessionClaim&) = delete;
  SessionClaim& operator=(const SessionClaim&) = delete;

  const session::SessionMap& session() const { return opened_.map; }
  int fd() const { return fd_; }  // of the session's file; stays the claim's

  // Whether somebody has cut the file, even if it has its size again: part of what is mapped reads
  // as zeros since (needs BusGuard::Install()).
  bool IsCut() const;

  // The session's name; empty for one without, or where it is gone.
  std::string Path() const;

  // Whether its process is recorded only while somebody has attached to it.
  bool has_door() const { return opened_.map.has_door(); }
  // Of a session with a door: waits until its process records for somebody, and has the recording's
  // time begin then. CANCELLED where nobody wants it (any more), or stop() says so; FAILED_PRECONDITION
  // where the process could not, or has ended.
  absl::Status WaitUntilRecorded(Target* target, Clock* clock, const std::function<bool()>& stop);

  // Has the claim's end take away the memory that is not needed any more: all of it was read.
  void ReleaseAtEnd() { release_ = true; }

  // Removes the session's name, if it has one and it is still this session's.
  absl::Status RemoveName();

 private:
  static constexpr size_t kPathSize = sizeof(session::CreatedSession::path);

  SessionClaim(int fd, const session::OpenedSession& opened)
      : fd_(fd),
        opened_(opened),
        header_(opened.map.header()),
        attach_(AttachUnderWay(opened.map.control())) {}

  static uint32_t AttachUnderWay(const session::Control& control);

  bool FindName(char (&path)[kPathSize]) const;

  // Of its own: a lock belongs to an open file, and the caller's may be shared with the traced
  // process.
  int fd_;
  session::OpenedSession opened_;
  const session::Header header_;  // as it is in the file
  const uint32_t attach_;  // that was wanted, or recorded, when the session was claimed; or 0
  bool release_ = false;
  bool is_recorded_ = false;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_CLAIM_H_
