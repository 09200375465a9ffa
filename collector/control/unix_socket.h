// collector/control/unix_socket.h
//
// Unix sockets at paths of any length. The kernel takes 107 bytes of path; a folder of sessions may
// lie deeper, so the socket is named through the folder's descriptor.
//
// Thread safety: free functions, from any thread.

#ifndef GMT_COLLECTOR_CONTROL_UNIX_SOCKET_H_
#define GMT_COLLECTOR_CONTROL_UNIX_SOCKET_H_

#include <sys/types.h>

#include <chrono>
#include <string>

#include "absl/status/statusor.h"

namespace gmt::control {

// A socket that listens at `path`, which only its user may open; what lies there is replaced if it is
// a socket. Non-blocking, the caller's.
absl::StatusOr<int> ListenAt(const std::string& path, int backlog);
// A socket that also waits no longer than `patience` in each send(), which then fails with EAGAIN.
// NOT_FOUND where nobody listens, PERMISSION_DENIED where we may not; DEADLINE_EXCEEDED where as many
// as may wait for who listens and it took none of them in.
absl::StatusOr<int> ConnectTo(const std::string& path, std::chrono::milliseconds patience);
void RemoveSocket(const std::string& path);

// Who is at the other end; -1 where that cannot be told.
uid_t PeerOf(int fd);

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_UNIX_SOCKET_H_
