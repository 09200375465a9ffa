// collector/sessions/target.h
//
// Target: the traced process as its collector sees it from outside: whether it is alive, how it
// ended, what its threads are called.
//
// A pid alone is not reliable, because another process may have taken it. The target is identified
// by a pidfd that was opened while it was certainly alive (the preloaded library leaves one), or
// otherwise by pid, start time and boot id together. The session holds the pid in the target's own
// PID namespace. If that is another one (a container), the pidfd yields the pid here.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_SESSIONS_TARGET_H_
#define GMT_COLLECTOR_SESSIONS_TARGET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "collector/clock.h"
#include "format/messages_fwd.h"
#include "session/layout.h"

namespace gmt::collector {

class Target {
 public:
  // Refers to the process that `header` names. Takes ownership of `inherited_pidfd` (-1: none).
  Target(const session::Header& header, int inherited_pidfd);
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  bool IsAlive();
  int pidfd() const { return pidfd_; }
  uint64_t pid() const { return pid_; }  // here; 0 if it has none

  // Returns how it ended, once IsAlive() is false: from the kernel's record, which appears when its
  // parent has reaped it, or while it is a zombie. Returns nullopt if neither is available.
  std::optional<gmt::Exit> FindExitStatus() const;

  // Returns the name of a thread, given its tid in the session; empty if it is gone.
  std::string ThreadName(uint32_t tid) const;

 private:
  bool IsSameProcess() const;

  uint64_t pid_, start_ticks_;
  int pidfd_;
  bool is_of_this_namespace_;
};

// Returns whether the session's pids belong to this process's PID namespace.
bool IsThisPidNamespace(const session::Header& header);

// Returns the process behind a pidfd, given the text of its /proc/PID/fdinfo/FD; 0 if it has ended
// or is not visible from here.
uint64_t PidOfPidfd(const std::string& fdinfo);

// Converts a wait status as returned by waitpid() and by the kernel's exit records.
gmt::Exit ExitFromWaitStatus(int status, const std::string& known_by);

// Returns the end as stored in the session's control page by the preloaded library's exit handler,
// or by `gpumemtrace run` as the parent.
std::optional<gmt::Exit> ExitFromSession(const session::Control& control);

// Returns how the target ended, from any of these sources. Waits up to half a second for its parent
// to reap it. Returns LOST if no source knows.
gmt::Exit FindExit(const Target& target, const session::Control& control, Clock* clock);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_TARGET_H_
