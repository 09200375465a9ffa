#include "collector/output/part_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/parts.h"

namespace gmt::collector {
namespace {

absl::Status Failed(const std::string& path, int error) {
  return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(error)));
}

std::string NextPath(const std::string& path) { return absl::StrCat(path, ".next"); }

bool IsNamed(int fd, const std::string& path) {
  struct stat open_file, named;
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev &&
         S_ISREG(open_file.st_mode);
}

}  // namespace

PartFiles::~PartFiles() {
  if (next_ >= 0) close(next_);
  if (owns_current_) close(current_);
}

absl::StatusOr<std::unique_ptr<OutputFile>> PartFiles::Create() {
  if (path_.empty()) path_ = PathOfDescriptor(current_);
  if (path_.empty() || !IsNamed(current_, path_))
    return absl::FailedPreconditionError("the recording is not a file with a name");
  struct stat old;
  if (fstat(current_, &old) != 0) return Failed(path_, errno);
  const std::string path = NextPath(path_);
  unlink(path.c_str());  // left by a collector that was killed
  const int fd =
      open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, old.st_mode & 0777);
  if (fd < 0) return Failed(path, errno);
  flock(fd, LOCK_EX | LOCK_NB);
  if (next_ >= 0) close(next_);
  next_ = fd;
  return std::make_unique<OutputFile>(calls_(fd));
}

// Creates a second name first, so that the recording's name always exists. If the file system has
// no hard links, renames twice. If an earlier attempt failed in between, that name may be the only
// one.
absl::Status PartFiles::Publish(uint32_t number) {
  const std::string part = format::PartPath(path_, number), next = NextPath(path_);
  if (!IsNamed(current_, part)) {
    unlink(part.c_str());  // left by an earlier recording of this name
    if (link(path_.c_str(), part.c_str()) != 0 && rename(path_.c_str(), part.c_str()) != 0)
      return Failed(part, errno);
  }
  if (rename(next.c_str(), path_.c_str()) != 0) return Failed(path_, errno);
  if (owns_current_) close(current_);
  current_ = std::exchange(next_, -1);
  owns_current_ = true;
  return absl::OkStatus();
}

void PartFiles::Remove(uint32_t number) { unlink(format::PartPath(path_, number).c_str()); }

}  // namespace gmt::collector
