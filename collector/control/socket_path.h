// collector/control/socket_path.h
//
// Where the collector of a session listens: beside the session's file. Where that has no name here (it
// is unnamed memory, or lies in a container's file system, in which nothing is to be made) it listens in
// this user's own directory of sessions, and its pid is in the socket's name.
//
// Thread safety: free functions, from any thread.

#ifndef GMT_COLLECTOR_CONTROL_SOCKET_PATH_H_
#define GMT_COLLECTOR_CONTROL_SOCKET_PATH_H_

#include <sys/types.h>

#include <string>
#include <string_view>

namespace gmt::control {

// A session that its collector has open, for one that has no other name: "/proc/PID/fd/FD".
std::string NameByCollector(pid_t collector, int fd);

// The path of the file behind a name by its collector; empty where it has none here.
std::string PathHere(const std::string& name);

// `session`: its path, or its name by its collector. The directory of the socket is made where it is
// missing; empty where there can be none.
std::string SocketPathOf(std::string_view session);

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_SOCKET_PATH_H_
