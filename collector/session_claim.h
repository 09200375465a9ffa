// collector/session_claim.h
//
// SessionClaim: a session opened by the one collector that may read it. Two readers would write one
// recording each and both would remove the session; a lock on the session's file, held as long as
// the claim, keeps the second one out. The lock goes with its process, so a collector that was
// killed leaves no trace of it.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_SESSION_CLAIM_H_
#define GMT_COLLECTOR_SESSION_CLAIM_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

  // Whether somebody has cut the file, even if it has its size again: part of what is mapped reads
  // as zeros since (needs BusGuard::Install()).
  bool IsCut() const;

  // The session's name; empty for one without, or where it is gone.
  std::string Path() const;

  // Removes the session's name, if it has one and it is still this session's.
  absl::Status RemoveName();

 private:
  static constexpr size_t kPathSize = sizeof(session::CreatedSession::path);

  SessionClaim(int fd, const session::OpenedSession& opened) : fd_(fd), opened_(opened) {}

  bool FindName(char (&path)[kPathSize]) const;

  // Of its own: a lock belongs to an open file, and the caller's may be shared with the traced
  // process.
  int fd_;
  session::OpenedSession opened_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSION_CLAIM_H_
