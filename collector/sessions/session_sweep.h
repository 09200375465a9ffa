// collector/sessions/session_sweep.h
//
// Removes sessions that are not needed any more. A session outlives its process so that it can be
// collected. One that has been collected, or was not collected for a day, would take memory for
// ever.
//
//   W1  Only a session of this user is removed, if its process is known to be gone (by pid, start
//       time and boot together; never known for a process of another PID namespace) and the session
//       is not locked.
//   W2  The lock is held while the name is removed, and the name must still refer to that file. A
//       collector that comes at the same moment either prevents the removal or finds the session
//       unchanged.
//   W3  A session whose recording is complete is removed immediately, any other one of any release
//       after a day without an event. A damaged session is recognised by its name alone and removed
//       a day after its last change.
//
// Thread safety: any number of concurrent calls, in any number of processes.

#ifndef GMT_COLLECTOR_SESSIONS_SESSION_SWEEP_H_
#define GMT_COLLECTOR_SESSIONS_SESSION_SWEEP_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gmt::collector {

inline constexpr uint64_t kKeepUncollectedNs = uint64_t{24} * 3600 * 1000000000;

// Removes the dead sessions in `directory`; those that were not collected only if they are older
// than `keep_ns`. Returns the paths that were removed.
std::vector<std::string> RemoveDeadSessions(const std::string& directory,
                                            uint64_t keep_ns = kKeepUncollectedNs);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_SWEEP_H_
