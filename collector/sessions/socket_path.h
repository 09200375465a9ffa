// collector/sessions/socket_path.h
//
// The path of a collector's control socket: beside the session's file. If the file has no name here
// (it is unnamed memory, or lies in a container's file system, where no file may be created), the
// socket is in this user's own session directory and has the collector's pid in its name.
//
// Thread safety: free functions, from any thread.

#ifndef GMT_COLLECTOR_SESSIONS_SOCKET_PATH_H_
#define GMT_COLLECTOR_SESSIONS_SOCKET_PATH_H_

#include <sys/types.h>

#include <string>
#include <string_view>

namespace gmt::control {

// Returns "/proc/PID/fd/FD", the name of a session that has no other name, through its collector.
std::string NameByCollector(pid_t collector, int fd);

// Returns the path of the file to which a name of NameByCollector() leads; empty if the file has no
// path in this file system.
std::string PathOfName(const std::string& name);

// `session`: its path, or its name by its collector. Creates the socket's directory if it is
// missing. Returns an empty path if there is no suitable directory.
std::string SocketPathOf(std::string_view session);

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_SESSIONS_SOCKET_PATH_H_
