#include "collector/sessions/session_search.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "collector/sessions/socket_path.h"
#include "collector/sessions/target.h"
#include "session/session_file.h"

namespace gmt::collector {
namespace {

namespace fs = std::filesystem;

// Returns the numeric entries of a directory; empty if it cannot be read.
std::set<pid_t> NumbersIn(const std::string& directory) {
  std::set<pid_t> numbers;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    pid_t number;
    if (absl::SimpleAtoi(it->path().filename().string(), &number)) numbers.insert(number);
  }
  return numbers;
}

// Compares the command name, which the kernel truncates.
bool IsCollectorOfThisUser(pid_t pid) {
  const std::string process = absl::StrCat("/proc/", pid);
  struct stat st;
  std::string command;
  std::getline(std::ifstream(process + "/comm"), command);
  return command.size() > sizeof("gpumemtrace") &&
         absl::StartsWith("gpumemtrace-collector", command) && stat(process.c_str(), &st) == 0 &&
         st.st_uid == geteuid();
}

// Returns the name, by its collector, of a session that a collector has open, that has no path
// here, and whose socket can be reached from here. Empty if there is none.
std::string NamelessSessionOf(pid_t collector) {
  for (const int fd : NumbersIn(absl::StrCat("/proc/", collector, "/fd"))) {
    const std::string path = control::NameByCollector(collector, fd);
    std::error_code error;
    const std::string link = fs::read_symlink(path, error).string();
    if (absl::StartsWith(link, "/memfd:")) return path;
    if (absl::EndsWith(link, ".session") || absl::EndsWith(link, ".session (deleted)")) {
      const bool is_followed =
          control::PathOfName(path).empty() && fs::exists(control::SocketPathOf(path), error);
      return is_followed ? path : "";
    }
  }
  return "";
}

// Returns the pid, in this namespace, of the process whose pidfd a collector has; 0 if unknown.
uint64_t TargetOf(pid_t collector) {
  const std::string directory = absl::StrCat("/proc/", collector, "/fdinfo");
  for (const int fd : NumbersIn(directory)) {
    std::ostringstream text;
    text << std::ifstream(absl::StrCat(directory, "/", fd)).rdbuf();
    if (const uint64_t pid = PidOfPidfd(text.str()); pid != 0) return pid;
  }
  return 0;
}

std::set<std::string> NamedSessions() {
  std::set<std::string> paths;
  char directory[PATH_MAX];
  for (int n = 0; session::SessionDirectory(n, directory); ++n) {
    if (directory[0] == '\0') continue;
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error)) {
      if (absl::EndsWith(it->path().native(), ".session")) paths.insert(it->path());
    }
  }
  return paths;
}

}  // namespace

std::vector<SessionSummary> FindSessions() {
  std::vector<SessionSummary> sessions;
  for (const std::string& path : NamedSessions()) {
    auto summary = SummariseFile(path);  // a session that disappears meanwhile was collected
    if (summary.ok()) sessions.push_back(*std::move(summary));
  }
  for (const pid_t pid : NumbersIn("/proc")) {
    if (!IsCollectorOfThisUser(pid)) continue;
    const std::string path = NamelessSessionOf(pid);
    if (path.empty()) continue;
    auto summary = SummariseFile(path);
    if (!summary.ok()) continue;
    // The session of a process in a container holds its pid inside the container.
    if (const uint64_t target = TargetOf(pid); target != 0) summary->pid = target;
    sessions.push_back(*std::move(summary));
  }
  std::sort(sessions.begin(), sessions.end(), [](const auto& a, const auto& b) {
    return std::pair(a.started_unix_ns, a.path) < std::pair(b.started_unix_ns, b.path);
  });
  return sessions;
}

}  // namespace gmt::collector
