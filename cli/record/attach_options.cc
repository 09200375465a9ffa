#include "cli/record/attach_options.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collector/inject/proc_file.h"
#include "session/launcher.h"

namespace gmt::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kDefaultPattern[] = "gpumemtrace.%h.%p.gmt";
// Small, because a watch of days only needs its verdict and the last hours.
constexpr char kDefaultWatchSize[] = "64MiB";

// The environment with which a process was started.
class Environment {
 public:
  explicit Environment(pid_t pid) {
    const auto text = inject::ReadProcFile(absl::StrCat("/proc/", pid, "/environ"));
    if (text.ok()) text_ = absl::StrCat(std::string(1, '\0'), *text);
  }
  // Returns nullptr if there is no such variable. This object owns the text.
  const char* Find(const std::string& name) const {
    const std::string wanted = absl::StrCat(std::string(1, '\0'), name, "=");
    const size_t at = text_.find(wanted);
    return at == std::string::npos ? nullptr : text_.c_str() + at + wanted.size();
  }
  std::string Get(const std::string& name) const {
    const char* value = Find(name);
    return value == nullptr ? "" : value;
  }
  session::Launcher Launcher() const {
    return session::Launcher::Read(
        [](void* of, const char* name) { return static_cast<const Environment*>(of)->Find(name); },
        const_cast<Environment*>(this));
  }

 private:
  std::string text_;
};

std::string OnePartOfPath(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// Returns the value of one letter after %, as the preloaded library expands it.
std::string Field(char letter, pid_t pid, const Environment& environment) {
  switch (letter) {
    case 'h': {
      char host[256] = {};
      gethostname(host, sizeof(host) - 1);
      return host;
    }
    case 'p':
      return absl::StrCat(pid);
    case 'r':
      return environment.Launcher().rank;
    case 'l':
      return environment.Launcher().local_rank;
    case 'j':
      return OnePartOfPath(environment.Launcher().job);
    case '%':
      return "%";
    default:
      return absl::StrCat("%", std::string(1, letter));
  }
}

std::string Expand(const std::string& pattern, pid_t pid) {
  const Environment environment(pid);
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    const size_t close =
        pattern.compare(i, 3, "%q{") == 0 ? pattern.find('}', i) : std::string::npos;
    if (close != std::string::npos) {
      path += environment.Get(pattern.substr(i + 3, close - i - 3));
      i = close;
    } else {
      path += Field(pattern[++i], pid, environment);
    }
  }
  return path;
}

}  // namespace

void AddAttachOptions(Command* command, AttachOptions* o) {
  command->Argument("PID", &o->pid, "process ID");
  command->Option("--watch", &o->watch, "TIME",
                  "stay attached for TIME (30m), report leaks as they become known, then detach; "
                  "implies --max-size 64MiB unless a limit is given");
  command->Choice(
      "--method", &o->method, {"auto", "dormant", "inject"},
      "dormant: use only the library that the process was started with; inject: inject it even "
      "if the seccomp filters of the process cannot be read");
  command->Flag("--check", &o->check,
                "only check whether attaching would work, and what prevents "
                "it");
  command->Flag("--all-ranks", &o->all_ranks, "attach to all processes below PID that use the GPU");
  command->Flag("--json", &o->json, "with --check or --watch: print JSON");
  o->recording.AddTo(*command);
  command->Flag("--quiet", &o->quiet, "print only errors");
}

absl::StatusOr<std::string> OptionText(const AttachOptions& o) {
  RecordingOptions recording = o.recording;
  const bool bounded =
      !recording.max_size.empty() || !recording.max_time.empty() || !recording.rotate.empty();
  if (!o.watch.empty() && !bounded) recording.max_size = kDefaultWatchSize;
  const std::string text = absl::StrJoin(recording.Pairs(), ",");
  if (absl::Status status = CheckOptionText(text); !status.ok()) return status;
  return text;
}

std::string RankOf(pid_t pid) { return Environment(pid).Launcher().rank; }

std::filesystem::path OutputFor(const std::string& pattern, pid_t pid) {
  std::error_code error;
  return fs::absolute(Expand(pattern.empty() ? kDefaultPattern : pattern, pid), error);
}

}  // namespace gmt::cli
