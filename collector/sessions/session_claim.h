// collector/sessions/session_claim.h
//
// SessionClaim: a session opened by the only collector that may read it. Two readers would write
// two recordings, and both would remove the session. A lock on the session's file, held for the
// lifetime of the claim, excludes the second one. The kernel releases the lock when its process
// ends, so a collector that was killed leaves none behind.
//
// In a session with an attach gate, what follows the info section may be read only after
// WaitUntilRecorded(). The claim's destructor releases that memory again, after the process has
// stopped writing to it.
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
  // Claims the session behind `fd`, which must be open for reading and writing and remains the
  // caller's. Returns FAILED_PRECONDITION if it is not a session that this release can read, and
  // ALREADY_EXISTS if another collector reads it.
  static absl::StatusOr<std::unique_ptr<SessionClaim>> Take(int fd);
  ~SessionClaim();
  SessionClaim(const SessionClaim&) = delete;
  SessionClaim& operator=(const SessionClaim&) = delete;

  const session::SessionMap& session() const { return opened_.map; }
  int fd() const { return fd_; }  // of the session's file; owned by the claim

  // Returns whether the file was truncated, even if it has its old size again: part of the mapping
  // reads as zeros since then. REQUIRES: BusGuard::Install().
  bool IsCut() const;

  // Returns the session's path; empty if it has no name or the name is gone.
  std::string Path() const;

  // Whether the process is recorded only while a client is attached to it.
  bool has_attach_gate() const { return opened_.map.has_attach_gate(); }
  // For a session with an attach gate: waits until its process records, and makes the recording's
  // time begin then. Returns CANCELLED if no client wants the recording (any more) or stop()
  // returns true, and FAILED_PRECONDITION if the process could not record or has ended.
  absl::Status WaitUntilRecorded(Target* target, Clock* clock, const std::function<bool()>& stop);

  // Makes the destructor release the memory that is not needed any more: all of it has been read.
  void ReleaseAtEnd() { release_ = true; }

  // Removes the session's name if it has one that still refers to this session.
  absl::Status RemoveName();

 private:
  static constexpr size_t kPathSize = sizeof(session::CreatedSession::path);

  SessionClaim(int fd, const session::OpenedSession& opened, uint32_t attach)
      : fd_(fd), opened_(opened), header_(opened.map.header()), attach_(attach) {}

  static uint32_t AttachUnderWay(const session::Control& control);

  bool FindName(char (&path)[kPathSize]) const;

  // A descriptor of its own: a lock belongs to an open file, and the traced process may share the
  // caller's.
  int fd_;
  session::OpenedSession opened_;
  const session::Header header_;  // as it is in the file
  const uint32_t attach_;         // wanted or recorded when the session was claimed; or 0
  bool release_ = false;
  bool is_recorded_ = false;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_CLAIM_H_
