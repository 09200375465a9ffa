#include "collector/inject/library_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace gmt::inject {
namespace {

// A descriptor that is closed on destruction.
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

// openat2() with the layout and number of linux/openat2.h (Linux 5.6).
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

// "libgpumemtrace.PID.PID.so": the pid of the process in its namespace, and ours.
std::string CopyName(const TargetInfo& target) {
  return absl::StrCat("libgpumemtrace.", target.inner_pid, ".", getpid(), ".so");
}
bool IsCopyName(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  pid_t pid;
  return parts.size() == 4 && parts[0] == "libgpumemtrace" && parts[3] == "so" &&
         absl::SimpleAtoi(parts[1], &pid) && absl::SimpleAtoi(parts[2], &pid);
}

// Returns the path of a copy that an earlier attach injected; empty if there is none. The loader
// knows the library by this path even if the file is gone; another copy would be another library.
std::string LoadedCopy(const TargetInfo& target) {
  std::error_code error;
  const std::string root =
      std::filesystem::read_symlink(absl::StrCat("/proc/", target.pid, "/root"), error).string();
  for (const Mapping& mapping : target.map) {
    const std::string_view name = mapping.Name();
    if (!IsCopyName(absl::string_view(name.data(), name.size()))) continue;
    absl::string_view path = absl::StripSuffix(mapping.path, " (deleted)");
    if (root.size() > 1) path = absl::StripPrefix(path, root);  // relative to its root
    return std::string(path);
  }
  return "";
}

bool LockNow(int file) { return flock(file, LOCK_EX | LOCK_NB) == 0; }

// Removes copies of the process's user that are not locked.
void RemoveStaleCopies(const TargetInfo& target, int folder) {
  Fd listed(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* entries = fdopendir(listed.get());
  if (entries == nullptr) return;
  listed.release();
  while (const dirent* entry = readdir(entries)) {
    if (!IsCopyName(entry->d_name)) continue;
    const Fd copy(openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info;
    if (fstat(copy.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != target.uid)
      continue;
    if (LockNow(copy.get())) unlinkat(folder, entry->d_name, 0);
  }
  closedir(entries);
}

// Returns a copy of the library, open and locked; a negative value if it cannot be created there,
// or if no program may be loaded from that folder. Only its owner, the process's user, may read it.
int PutCopy(const TargetInfo& target, int folder, const std::string& name, int library) {
  struct statvfs fs;
  if (fstatvfs(folder, &fs) != 0 || (fs.f_flag & (ST_NOEXEC | ST_RDONLY)) != 0) return -1;
  Fd copy(openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (copy.get() < 0) return -1;
  struct stat locked;  // has no name if another injector removed it before we locked it
  const bool ours = LockNow(copy.get()) && fstat(copy.get(), &locked) == 0 && locked.st_nlink == 1;
  const bool owned = target.uid == geteuid() || fchown(copy.get(), target.uid, target.gid) == 0;
  if (ours && owned && CopyBytes(library, copy.get())) return copy.release();
  unlinkat(folder, name.c_str(), 0);
  return -1;
}

}  // namespace

bool SeesFile(const TargetInfo& target, const std::string& path) {
  const Fd root(OpenRoot(target.pid));
  const Fd own(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // Does not wait for the other end if the path is a pipe.
  const Fd seen(OpenInRoot(root.get(), path.c_str(), O_RDONLY | O_NONBLOCK));
  // An old kernel, or a container's seccomp filter that does not allow openat2().
  if (seen.get() < 0 && (errno == ENOSYS || errno == EPERM)) return target.own_mount_namespace;
  struct stat a, b;
  if (fstat(own.get(), &a) != 0 || fstat(seen.get(), &b) != 0) return false;
  if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) return true;
  return a.st_size == b.st_size && S_ISREG(b.st_mode) && SameBytes(own.get(), seen.get());
}

absl::StatusOr<std::unique_ptr<LibraryPlace>> LibraryPlace::Find(const TargetInfo& target,
                                                                 const std::string& library) {
  const Fd root(OpenRoot(target.pid));
  if (const std::string loaded = LoadedCopy(target); !loaded.empty()) {
    const Fd folder(OpenInRoot(root.get(), std::filesystem::path(loaded).parent_path().c_str(),
                               O_RDONLY | O_DIRECTORY));
    RemoveStaleCopies(target, folder.get());
    return std::unique_ptr<LibraryPlace>(new LibraryPlace(loaded));
  }
  if (SeesFile(target, library)) return std::unique_ptr<LibraryPlace>(new LibraryPlace(library));
  const Fd file(open(library.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string name = CopyName(target);
  const std::vector<std::string> folders = {"/tmp", "/var/tmp", "/dev/shm", "/run"};
  for (const std::string& folder : folders) {
    Fd open_folder(OpenInRoot(root.get(), folder.c_str(), O_RDONLY | O_DIRECTORY));
    if (open_folder.get() < 0) continue;
    RemoveStaleCopies(target, open_folder.get());
    const int copy = PutCopy(target, open_folder.get(), name, file.get());
    if (copy < 0) continue;
    std::unique_ptr<LibraryPlace> place(new LibraryPlace(absl::StrCat(folder, "/", name)));
    place->name_ = name;
    place->folder_ = open_folder.release();
    place->copy_ = copy;
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
  close(copy_);
  close(folder_);
}

}  // namespace gmt::inject
