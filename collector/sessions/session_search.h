// collector/sessions/session_search.h
//
// Finds the existing sessions.
//
// Thread safety: free functions, from any thread.

#ifndef GMT_COLLECTOR_SESSIONS_SESSION_SEARCH_H_
#define GMT_COLLECTOR_SESSIONS_SESSION_SEARCH_H_

#include <vector>

#include "collector/sessions/session_summary.h"

namespace gmt::collector {

// Returns every session of this user, oldest first: those in the session directories, those in
// unnamed memory held by a collector of this user, and those in containers whose collector outside
// the container listens in the session directories. Sessions that cannot be opened are skipped.
std::vector<SessionSummary> FindSessions();

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_SEARCH_H_
