#include "cli/record/claimed_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kElsewhere = ". Write elsewhere with: -o FILE";

// Returns the n-th name to try.
fs::path Name(const fs::path& wanted, int n) {
  if (n == 0) return wanted;
  return wanted.parent_path() /
         absl::StrCat(wanted.stem().string(), ".", n, wanted.extension().string());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClaimedOutput>> ClaimedOutput::Make(const fs::path& wanted) {
  constexpr int kMaxAttempts = 10000;
  const std::string folder = wanted.parent_path().string();
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return absl::NotFoundError(absl::StrCat(folder, " does not exist", kElsewhere));
  if (access(folder.c_str(), W_OK) != 0)
    return absl::PermissionDeniedError(absl::StrCat(folder, " cannot be written to", kElsewhere));
  for (int n = 0; n < kMaxAttempts; ++n) {
    const std::string path = Name(wanted, n).string();
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      flock(fd, LOCK_EX | LOCK_NB);
      return std::unique_ptr<ClaimedOutput>(new ClaimedOutput(path, fd));
    }
    if (errno != EEXIST) {
      return absl::UnavailableError(
          absl::StrCat(path, " cannot be created: ", std::strerror(errno), kElsewhere));
    }
  }
  return absl::AlreadyExistsError(
      absl::StrCat(wanted.string(), ": no free file name next to it. Use -o FILE"));
}

ClaimedOutput::ClaimedOutput(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
  struct stat st;
  if (fstat(fd, &st) != 0) return;
  device_ = st.st_dev;
  inode_ = st.st_ino;
}

ClaimedOutput::~ClaimedOutput() { HandOver(); }

void ClaimedOutput::HandOver() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void ClaimedOutput::RemoveIfEmpty() {
  struct stat st;
  if (lstat(path_.c_str(), &st) == 0 && st.st_dev == device_ && st.st_ino == inode_ &&
      st.st_size == 0) {
    unlink(path_.c_str());
  }
}

}  // namespace gmt::cli
