// collector/sessions/session_summary.h
//
// SessionSummary: what a session's file says, and the state of its process and its collector. For
// code that decides about a session without being its collector.
//
// Everything is copied with pread(): a session that is truncated or overwritten while it is read
// can neither crash the reader nor make it read out of bounds. A collector at work is detected by
// the lock that it holds. The check takes a shared lock for a few microseconds, which SessionClaim
// waits out.
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
  kRecording,     // a collector reads it
  kUnattended,    // its process is alive, but no collector reads it
  kDormant,       // its process waits for an attach
  kOrphaned,      // its process is gone and it has not been collected
  kCollected,     // its recording is complete; only the name is still there
  kOtherBoot,     // from before the machine restarted, not collected
  kElsewhere,     // its process is in another PID namespace; its state is unknown
  kOtherRelease,  // readable only by another release
  kDamaged,       // it is not, or no longer, a session
};

// Returns "recording", "unattended", "orphaned" ...: the name in `list --json`.
const char* StateName(SessionState state);

struct SessionSummary {
  std::string path;  // /proc/PID/fd/N of its collector if the session has no name here
  SessionState state = SessionState::kDamaged;
  std::string damage;          // if damaged or of another release: what is wrong
  uint64_t pid = 0;            // in this namespace, as far as known
  uint64_t collector_pid = 0;  // 0: no collector has it open
  uint64_t bytes = 0;
  uint64_t started_unix_ns = 0;
  uint64_t age_ns = 0;   // since the session began
  uint64_t idle_ns = 0;  // since its newest event, or since it began
  uint32_t abi_major = 0;
  std::string output;           // where its process was meant to be recorded to
  std::string version;          // the release that created it
  std::string collector, shim;  // paths of programs of that release; may be empty
  std::string run_id;
  std::vector<std::string> argv;
};

// Summarises the session behind `fd`, which remains the caller's. Works for any file: what is wrong
// with it is its state.
SessionSummary Summarise(int fd, const std::string& path);
// Like Summarise(), for a path. Returns NOT_FOUND or PERMISSION_DENIED if it cannot be opened or
// belongs to another user.
absl::StatusOr<SessionSummary> SummariseFile(const std::string& path);

// Opens a session's file for reading and writing. The path may come from another process, so a
// device or the end of a pipe, for which opening alone has effects, is not opened. Returns -1 with
// errno set on error: EINVAL for these.
int OpenSessionFile(const std::string& path);

// Returns whether the session behind `fd` is locked. The caller must not share its open file
// description.
bool IsClaimed(int fd);

// Returns whether the process that `header` names is gone for good: of an earlier boot, ended (even
// as a zombie), or replaced by another process with the same pid. False if unknown.
bool ProcessIsGone(const session::Header& header);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_SUMMARY_H_
