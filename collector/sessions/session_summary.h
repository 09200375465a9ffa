// collector/sessions/session_summary.h
//
// SessionSummary: what a session's file says about itself, and how things stand with its process
// and its collector. For whoever has to decide about a session without being its collector.
//
// Everything is read by pread() into copies: a session that is cut or scribbled over while it is
// looked at can neither crash nor mislead the reader into reading outside of it. Whether a
// collector is at work is told by the lock that it holds; looking takes a shared one for a few
// microseconds, which SessionClaim waits out.
//
// Thread safety: free functions; values are plain.

#ifndef GMT_COLLECTOR_SESSIONS_SESSION_SUMMARY_H_
#define GMT_COLLECTOR_SESSIONS_SESSION_SUMMARY_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "session/layout.h"

namespace gmt::collector {

enum class SessionState {
  kRecording,     // a collector is at work on it
  kUnattended,    // its process lives, but no collector reads it
  kDormant,       // its process waits to be attached to
  kOrphaned,      // its process is gone and it has not been collected
  kCollected,     // its recording is complete; only the name is still there
  kOtherBoot,     // from before the machine restarted, not collected
  kElsewhere,     // its process belongs to another PID namespace, so nothing is known about it
  kOtherRelease,  // only another release can read it
  kDamaged,       // it is not, or no longer, a session
};

// "recording", "unattended", "orphaned" ...: as `list --json` has it.
const char* StateName(SessionState state);

struct SessionSummary {
  std::string path;  // /proc/PID/fd/N of its collector for a session without a name here
  SessionState state = SessionState::kDamaged;
  std::string damage;          // where it is damaged or of another release: what is wrong
  uint64_t pid = 0;            // here, as far as that can be told
  uint64_t collector_pid = 0;  // 0: none has it open
  uint64_t bytes = 0;
  uint64_t started_unix_ns = 0;
  uint64_t age_ns = 0;   // since the session began
  uint64_t idle_ns = 0;  // since its newest event, or since it began
  uint32_t abi_major = 0;
  std::string output;           // where its process was to be recorded to
  std::string version;          // of the release that made it
  std::string collector, shim;  // programs of that release; either may be empty
  std::string run_id;
  std::vector<std::string> argv;
};

// Looks at the session behind `fd`, which stays the caller's. Anything can be summarised: what is
// wrong is its state.
SessionSummary Summarise(int fd, const std::string& path);
// Opens `path` first. NOT_FOUND, PERMISSION_DENIED where it cannot be, or is another user's.
absl::StatusOr<SessionSummary> SummariseFile(const std::string& path);

// Opens a session's file for reading and writing. The path may be what another process says: a device, or
// the end of a pipe, for which opening alone does something, is not opened. -1 and errno: EINVAL for these.
int OpenSessionFile(const std::string& path);

// Whether somebody holds the lock of the session behind `fd`, whose open file must be the caller's
// own.
bool IsClaimed(int fd);

// Whether the process that `header` names is gone for good: of another boot, ended (a zombie has),
// or replaced by another of the same pid. False wherever that cannot be known.
bool ProcessIsGone(const session::Header& header);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_SUMMARY_H_
