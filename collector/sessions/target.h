// collector/sessions/target.h
//
// Target: the traced process as its collector sees it from outside: whether it lives, how it ended,
// what its threads are called.
//
// A pid alone says little: it may be taken by another process already. The target is known by a
// pidfd that was opened while it certainly lived (the shim leaves one), or else by pid, start time
// and boot id together. Its session has the number that it has in its own PID namespace; where that
// is another one (a container), the pidfd says which it has here.
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
  // The process that `header` names. `inherited_pidfd` is taken over; -1 where there is none.
  Target(const session::Header& header, int inherited_pidfd);
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  bool IsAlive();
  int pidfd() const { return pidfd_; }
  uint64_t pid() const { return pid_; }  // here; 0 where it has none

  // How it ended, once IsAlive() is false: by the kernel's record, which appears when its parent
  // has reaped it, or while it is a zombie. Nothing where neither can be had.
  std::optional<gmt::Exit> HowItEnded() const;

  // The name of one of its threads, by its number in the session; empty where it is gone.
  std::string ThreadName(uint32_t tid) const;

 private:
  bool IsSameProcess() const;

  uint64_t pid_, start_ticks_;
  int pidfd_;
  bool is_of_this_namespace_;
};

// Whether the session's numbers of processes are those of this process's PID namespace.
bool IsThisPidNamespace(const session::Header& header);

// The process behind a pidfd, by the text of its /proc/PID/fdinfo/FD; 0 where it has ended, or is not
// to be seen from here.
uint64_t PidOfPidfd(const std::string& fdinfo);

// An exit from a wait status, as waitpid() and the kernel's exit records have it.
gmt::Exit ExitFromWaitStatus(int status, const std::string& known_by);

// What the session's control page says of the end (the shim's exit handler, or `gpumemtrace run` as
// the parent).
std::optional<gmt::Exit> ExitFromSession(const session::Control& control);

// How the target ended, from whoever knows; waits up to half a second for its parent to reap it.
// `lost` where nobody does.
gmt::Exit FindExit(const Target& target, const session::Control& control, Clock* clock);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_TARGET_H_
