#include "collector/sessions/socket_path.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "session/session_file.h"

namespace gmt::control {
namespace {

bool IsNameByCollector(std::string_view session, pid_t* collector) {
  int fd = 0, end = 0;
  const std::string name(session);
  return std::sscanf(name.c_str(), "/proc/%d/fd/%d%n", collector, &fd, &end) == 2 &&
         static_cast<size_t>(end) == name.size();
}

// Returns the session directories that no other user can write to. Creates the first one if
// missing.
std::vector<std::string> OwnDirectories() {
  std::vector<std::string> own;
  char path[PATH_MAX];
  for (int n = 0; session::SessionDirectory(n, path); ++n) {
    if (path[0] == '\0') continue;
    if (own.empty()) mkdir(path, 0700);
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & 022) == 0) {
      own.emplace_back(path);
    }
  }
  return own;
}

}  // namespace

std::string NameByCollector(pid_t collector, int fd) {
  return absl::StrCat("/proc/", collector, "/fd/", fd);
}

std::string PathOfName(const std::string& name) {
  char path[PATH_MAX] = {};
  struct stat file, named;
  const bool same = readlink(name.c_str(), path, sizeof(path) - 1) > 0 && path[0] == '/' &&
                    stat(name.c_str(), &file) == 0 && lstat(path, &named) == 0 &&
                    file.st_ino == named.st_ino && file.st_dev == named.st_dev;
  return same ? path : "";
}

std::string SocketPathOf(std::string_view session) {
  pid_t collector;
  if (!IsNameByCollector(session, &collector)) return absl::StrCat(std::string(session), ".sock");
  const std::string path = PathOfName(std::string(session));
  if (!path.empty()) return absl::StrCat(path, ".sock");
  const std::string name = absl::StrCat("/collector-", collector, ".sock");
  const std::vector<std::string> directories = OwnDirectories();
  for (const std::string& directory : directories) {
    if (struct stat st; lstat((directory + name).c_str(), &st) == 0) return directory + name;
  }
  return directories.empty() ? "" : directories.front() + name;
}

}  // namespace gmt::control
