#include "collector/sessions/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace gmt::control {
namespace {

// The directory of a path, held open, and the address of the file in it.
class Place {
 public:
  explicit Place(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    name_ = slash == std::string::npos ? path : path.substr(slash + 1);
    fd_ = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    const std::string through = absl::StrCat("/proc/self/fd/", fd_, "/", name_);
    if (fd_ < 0) {
      errno_ = errno;
    } else if (name_.empty() || through.size() >= sizeof address_.sun_path) {
      errno_ = ENAMETOOLONG;
    } else {
      address_.sun_family = AF_UNIX;
      std::memcpy(address_.sun_path, through.c_str(), through.size() + 1);
    }
  }
  ~Place() {
    if (fd_ >= 0) close(fd_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  int error() const { return errno_; }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);
  // Returns the inode of the socket there; 0 if there is none.
  ino_t Inode() const {
    struct stat st;
    const bool is_socket =
        fstatat(fd_, name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
    return is_socket ? st.st_ino : 0;
  }
  void Remove() const { unlinkat(fd_, name_.c_str(), 0); }

 private:
  int fd_ = -1, errno_ = 0;
  std::string name_;
  sockaddr_un address_ = {};
};

absl::Status Failed(const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(path));
}

// Sets the timeout of connect() and send(). At least 1 ms, because 0 means no timeout.
void SetPatience(int fd, std::chrono::milliseconds patience) {
  const auto count = std::max<int64_t>(patience.count(), 1);
  const timeval time = {static_cast<time_t>(count / 1000),
                        static_cast<suseconds_t>(count % 1000 * 1000)};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

// Calls connect(), which a signal interrupts despite SA_RESTART if a timeout is set. Returns the
// errno; 0 on success.
int Connect(int fd, const Place& place, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + patience;
  SetPatience(fd, patience);
  while (connect(fd, place.address(), Place::kSize) != 0) {
    if (errno != EINTR) return errno;
    SetPatience(fd, std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()));
  }
  SetPatience(fd, patience);
  return 0;
}

int Bind(int fd, const Place& place) {
  return bind(fd, place.address(), Place::kSize) == 0 ? 0 : errno;
}

// Returns whether no process listens at the socket, whose process may have been killed.
bool IsAbandoned(const std::string& path) {
  const absl::StatusOr<int> fd = ConnectTo(path, std::chrono::milliseconds(1));
  if (fd.ok()) close(*fd);
  return absl::IsNotFound(fd.status());
}

}  // namespace

absl::StatusOr<int> ListenAt(const std::string& path, int backlog, IfInUse if_in_use) {
  const Place place(path);
  if (place.error() != 0) return Failed(path, place.error());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed(path, errno);
  // The socket file gets the mode of the socket.
  fchmod(fd, 0600);
  int error = Bind(fd, place);
  if (error == EADDRINUSE && place.Inode() != 0 &&
      (if_in_use == IfInUse::kReplace || IsAbandoned(path))) {
    place.Remove();
    error = Bind(fd, place);
  }
  if (error == 0 && listen(fd, backlog) != 0) error = errno;
  if (error == 0) return fd;
  close(fd);
  return Failed(path, error);
}

absl::StatusOr<int> ConnectTo(const std::string& path, std::chrono::milliseconds patience) {
  const Place place(path);
  if (place.error() != 0) return Failed(path, place.error());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed(path, errno);
  const int error = Connect(fd, place, patience);
  if (error == 0) return fd;
  close(fd);
  if (error == EAGAIN) {
    return absl::DeadlineExceededError(
        absl::StrCat(path, ": the collector does not answer, and its connection backlog is full"));
  }
  return Failed(path, error == ECONNREFUSED ? ENOENT : error);  // left by a process that is gone
}

ino_t SocketInode(const std::string& path) {
  const Place place(path);
  return place.error() == 0 ? place.Inode() : 0;
}

void RemoveSocket(const std::string& path, ino_t inode) {
  const Place place(path);
  if (place.error() != 0) return;
  const ino_t there = place.Inode();
  if (there != 0 && (inode == 0 || inode == there)) place.Remove();
}

uid_t PeerOf(int fd) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return static_cast<uid_t>(-1);
  return peer.uid;
}

}  // namespace gmt::control
