#include "cli/browser.h"

#include <fcntl.h>
#include <pwd.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

extern char** environ;

namespace gmt::cli {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string UserName() {
  const passwd* user = getpwuid(geteuid());
  return user == nullptr ? Environment("USER") : user->pw_name;
}

// Returns the address at which ssh reached this machine, which the user's machine can reach.
std::string HostName() {
  const std::vector<std::string> connection = absl::StrSplit(Environment("SSH_CONNECTION"), ' ');
  if (connection.size() == 4) return connection[2];
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "HOST";
}

// Spawns a program that does not write to this program's terminal and does not end with it.
class Detached {
 public:
  Detached() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID);
  }
  ~Detached() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Detached(const Detached&) = delete;
  Detached& operator=(const Detached&) = delete;

  bool Run(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = 0;
    return posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments.data(), environ) ==
           0;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

bool IsOverSsh() { return !Environment("SSH_CONNECTION").empty(); }

std::string BrowserCommand() {
  if (IsOverSsh()) return "";
  // In a list "a:b" the first one that works is to be used. This takes the first one.
  const std::string chosen = Environment("BROWSER");
  if (!chosen.empty()) return std::vector<std::string>(absl::StrSplit(chosen, ':'))[0];
  const bool has_display =
      !Environment("DISPLAY").empty() || !Environment("WAYLAND_DISPLAY").empty();
  return has_display ? "xdg-open" : "";
}

bool OpenBrowser(const std::string& command, const std::string& url) {
  std::vector<std::string> words = absl::StrSplit(command, ' ', absl::SkipEmpty());
  if (words.empty()) return false;
  // As other programs interpret $BROWSER: the address replaces "%s", or is appended.
  bool is_placed = false;
  for (std::string& word : words) {
    if (word != "%s") continue;
    word = url;
    is_placed = true;
  }
  if (!is_placed) words.push_back(url);
  return Detached().Run(std::move(words));
}

std::string ForwardingCommand(int port) {
  return absl::StrCat("ssh -N -L ", port, ":127.0.0.1:", port, " ", UserName(), "@", HostName());
}

}  // namespace gmt::cli
