// collector/sessions/session_info.h
//
// What the traced process wrote about itself when it created the session (session/layout.h, "Names
// in the info section"), and the parts of the recording that are derived from it.
//
// Thread safety: plain values, pure functions.

#ifndef GMT_COLLECTOR_SESSIONS_SESSION_INFO_H_
#define GMT_COLLECTOR_SESSIONS_SESSION_INFO_H_

#include <string>
#include <utility>
#include <vector>

#include "format/messages_fwd.h"
#include "session/session_map.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}

namespace gmt::collector {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct SessionInfo {
  std::string output, run_id, exe, cwd, hostname, shim, version, rank, local_rank, job, unwinder;
  std::string world_size, node_rank, restart_count;
  std::string started_by;  // "attach"; empty: recorded from its start
  std::vector<std::string> argv;
  std::vector<std::string> apis;  // by api number; empty strings where a number has no name
  Pairs options, settings, sources;
};

SessionInfo ReadSessionInfo(const session::SessionMap& session);

// Returns the recording's header.
gmt::Header MakeHeader(const session::Header& session, const SessionInfo& info);

// Returns what is known about the process when recording starts.
gmt::Facts MakeStartFacts(const session::Header& session, const SessionInfo& info);

void AddSetting(google::protobuf::RepeatedPtrField<gmt::Setting>* settings, const std::string& name,
                const std::string& value);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_SESSION_INFO_H_
