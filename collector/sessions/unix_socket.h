// collector/sessions/unix_socket.h
//
// Unix sockets at paths of any length. The kernel limits a socket's path to 107 bytes, but a
// session directory may have a longer one, so the socket is addressed through the directory's
// descriptor.
//
// Thread safety: free functions, from any thread.

#ifndef GMT_COLLECTOR_SESSIONS_UNIX_SOCKET_H_
#define GMT_COLLECTOR_SESSIONS_UNIX_SOCKET_H_

#include <sys/types.h>

#include <chrono>
#include <string>

#include "absl/status/statusor.h"

namespace gmt::control {

// What happens to a socket at which another process listens.
enum class IfInUse { kReplace, kFail };

// Creates a non-blocking socket that listens at `path` and that only its user may open. Replaces an
// existing socket there if no process listens at it, or as `if_in_use` says. The caller owns the
// descriptor.
absl::StatusOr<int> ListenAt(const std::string& path, int backlog,
                             IfInUse if_in_use = IfInUse::kReplace);
// Connects to the socket at `path`. `patience` limits this and each later send(), which then fails
// with EAGAIN. Returns NOT_FOUND if no process listens, PERMISSION_DENIED if it may not be opened,
// and DEADLINE_EXCEEDED if the listener's backlog stays full.
absl::StatusOr<int> ConnectTo(const std::string& path, std::chrono::milliseconds patience);
// Returns the inode of the socket at `path`; 0 if there is none. No other socket gets that inode
// while this one is open.
ino_t SocketInode(const std::string& path);
// Removes the socket at `path`. If an inode is given, removes only that socket.
void RemoveSocket(const std::string& path, ino_t inode = 0);

// Returns the user at the other end; -1 if unknown.
uid_t PeerOf(int fd);

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_SESSIONS_UNIX_SOCKET_H_
