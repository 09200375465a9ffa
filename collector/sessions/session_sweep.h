// collector/sessions/session_sweep.h
//
// Sessions that nobody needs any more. A session outlives its process so that it can be collected;
// one that has been, or that nobody collected for a day, would take memory for ever.
//
//   W1  Removed is only what belongs to this user, whose process is known to be gone (pid, start
//       time and boot together; a process of another PID namespace is never known to be), and that
//       nobody has locked.
//   W2  The lock is held while the name goes, and the name must still be that file's: a collector
//       that comes at the same moment either keeps the sweep away or finds the session as it was.
//   W3  A session whose recording is complete goes at once; any other after a day without an event,
//       of whatever release. What is damaged is known by its name alone and goes a day after it last changed.
//
// Thread safety: any number at a time, in any number of processes.

#ifndef GMT_COLLECTOR_SESSIONS_SESSION_SWEEP_H_
#define GMT_COLLECTOR_SESSIONS_SESSION_SWEEP_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gmt::collector {

inline constexpr uint64_t kKeepUncollectedNs = uint64_t{24} * 3600 * 1000000000;

// Removes the dead sessions in `directory`, of which those that were not collected only when they
// are older than `keep_ns`. Returns the paths that are gone.
std::vector<std::string> RemoveDeadSessions(const std::string& directory,
                                            uint64_t keep_ns = kKeepUncollectedNs);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_SWEEP_H_
