#include "collector/inject/library_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmt::inject {
namespace {

// A descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Layout and number of linux/openat2.h (Linux 5.6).
int OpenInRoot(int root, const char* path, uint64_t flags) {
  struct {
    uint64_t flags, mode, resolve;
  } how = {flags | O_CLOEXEC, 0, 0x10};  // RESOLVE_IN_ROOT
  constexpr long kOpenat2 = 437;
  return static_cast<int>(syscall(kOpenat2, root, path, &how, sizeof(how)));
}

int OpenRoot(pid_t pid) {
  return open(absl::StrCat("/proc/", pid, "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool CopyBytes(int from, int to) {
  char buffer[1 << 16];
  off_t at = 0;
  ssize_t n;
  while ((n = pread(from, buffer, sizeof(buffer), at)) > 0) {
    if (write(to, buffer, static_cast<size_t>(n)) != n) return false;
    at += n;
  }
  return n == 0;
}

bool SameBytes(int a, int b) {
  char left[1 << 14], right[1 << 14];
  off_t at = 0;
  while (true) {
    const ssize_t n = pread(a, left, sizeof(left), at);
    if (n < 0 || pread(b, right, sizeof(right), at) != n) return false;
    if (n == 0) return true;
    if (std::memcmp(left, right, static_cast<size_t>(n)) != 0) return false;
    at += n;
  }
}

// Whether a copy may lie there: programs may be loaded from it, and it takes the file. Only its owner
// may read it, who is the process's user.
bool PutCopy(const TargetInfo& target, int folder, const std::string& name, int library) {
  struct statvfs fs;
  if (fstatvfs(folder, &fs) != 0 || (fs.f_flag & (ST_NOEXEC | ST_RDONLY)) != 0) return false;
  const Fd copy(
      openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (copy.get() < 0) return false;
  const bool owned = target.uid == geteuid() || fchown(copy.get(), target.uid, target.gid) == 0;
  if (owned && CopyBytes(library, copy.get())) return true;
  unlinkat(folder, name.c_str(), 0);
  return false;
}

}  // namespace

bool SeesFile(const TargetInfo& target, const std::string& path) {
  const Fd root(OpenRoot(target.pid));
  const Fd own(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // Not to wait for the other end of a pipe that lies there.
  const Fd seen(OpenInRoot(root.get(), path.c_str(), O_RDONLY | O_NONBLOCK));
  // An old kernel, or a container's filter that does not know the call.
  if (seen.get() < 0 && (errno == ENOSYS || errno == EPERM)) return target.own_mount_namespace;
  struct stat a, b;
  if (fstat(own.get(), &a) != 0 || fstat(seen.get(), &b) != 0) return false;
  if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) return true;
  return a.st_size == b.st_size && S_ISREG(b.st_mode) && SameBytes(own.get(), seen.get());
}

absl::StatusOr<std::unique_ptr<LibraryPlace>> LibraryPlace::Find(const TargetInfo& target,
                                                                 const std::string& library) {
  if (SeesFile(target, library)) return std::unique_ptr<LibraryPlace>(new LibraryPlace(library));
  const Fd file(open(library.c_str(), O_RDONLY | O_CLOEXEC));
  const Fd root(OpenRoot(target.pid));
  const std::string name = absl::StrCat("libgpumemtrace.", target.inner_pid, ".", getpid(), ".so");
  const std::vector<std::string> folders = {"/tmp", "/var/tmp", "/dev/shm", "/run"};
  for (const std::string& folder : folders) {
    Fd open_folder(OpenInRoot(root.get(), folder.c_str(), O_RDONLY | O_DIRECTORY));
    if (open_folder.get() < 0 || !PutCopy(target, open_folder.get(), name, file.get())) continue;
    std::unique_ptr<LibraryPlace> place(new LibraryPlace(absl::StrCat(folder, "/", name)));
    place->name_ = name;
    place->folder_ = open_folder.release();
    return place;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "process ", target.pid, " does not see ", library,
      " (it has another root: a container), and none of ", absl::StrJoin(folders, ", "),
      " there takes a copy that may be executed. Mount one of them without noexec, or put the "
      "library "
      "into the container's image"));
}

LibraryPlace::~LibraryPlace() {
  if (folder_ < 0) return;
  unlinkat(folder_, name_.c_str(), 0);
  close(folder_);
}

}  // namespace gmt::inject
