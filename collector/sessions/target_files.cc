#include "collector/sessions/target_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace gmt::collector {
namespace {

// Whether both are the same directory of the same mount. Containers may share the device and differ
// in the mounts below it, so the namespaces are compared, too.
bool IsOurs(const std::string& process, const std::string& root) {
  struct stat ours, theirs;
  const auto same = [&](const char* a, const std::string& b) {
    return stat(a, &ours) == 0 && stat(b.c_str(), &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
  };
  return same("/", root) && same("/proc/self/ns/mnt", process + "/ns/mnt");
}

}  // namespace

TargetFiles::TargetFiles(uint64_t pid) {
  if (pid == 0) return;
  process_ = absl::StrCat("/proc/", pid);
  const std::string root = process_ + "/root";
  if (IsOurs(process_, root)) return;
  root_fd_ = open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root_fd_ >= 0) root_ = absl::StrCat("/proc/self/fd/", root_fd_);
}

TargetFiles::~TargetFiles() {
  if (root_fd_ >= 0) close(root_fd_);
}

}  // namespace gmt::collector
