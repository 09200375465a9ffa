#include "symbols/cache_directory.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gmt::symbols {
namespace {

// linux/magic.h does not define these.
constexpr uint32_t kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e, kXfs = 0x58465342;

constexpr uint32_t kLocal[] = {
    EXT4_SUPER_MAGIC, kXfs, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
    RAMFS_MAGIC,      kZfs, kBcachefs};

absl::Status MakeAll(const std::string& directory) {
  for (size_t end = directory.find('/', 1);; end = directory.find('/', end + 1)) {
    const std::string part = directory.substr(0, end);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return absl::UnavailableError(absl::StrCat(part, ": ", strerror(errno)));
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

}  // namespace

absl::Status MakePrivateDirectory(const std::string& directory) {
  absl::Status made = MakeAll(directory);
  if (!made.ok()) return made;
  struct stat info;
  if (lstat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(directory, ": is not a directory"));
  }
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat(directory, ": belongs to another user"));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(directory, ": is writable by other users"));
  }
  return absl::OkStatus();
}

bool IsLocal(const std::string& directory) {
  struct statfs info;
  if (statfs(directory.c_str(), &info) != 0) return false;
  return std::count(std::begin(kLocal), std::end(kLocal), static_cast<uint32_t>(info.f_type)) > 0;
}

}  // namespace gmt::symbols
