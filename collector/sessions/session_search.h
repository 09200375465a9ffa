// collector/sessions/session_search.h
//
// Which sessions there are.
//
// Thread safety: free functions, from any thread.

#ifndef GMT_COLLECTOR_SESSIONS_SESSION_SEARCH_H_
#define GMT_COLLECTOR_SESSIONS_SESSION_SEARCH_H_

#include <vector>

#include "collector/sessions/session_summary.h"

namespace gmt::collector {

// Every session of this user, oldest first: in the directories that sessions live in; in unnamed memory,
// wherever a collector of this user holds it; and in containers, where a collector out here listens in
// those directories. What cannot be opened is left out.
std::vector<SessionSummary> FindSessions();

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_SEARCH_H_
