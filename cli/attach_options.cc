#include "cli/attach_options.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "collector/inject/proc_file.h"
#include "session/options.h"

namespace gmt::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kDefaultPattern[] = "gpumemtrace.%h.%p.gmt";

absl::Status Check(const std::string& text) {
  session::Options parsed;
  std::string problem;
  session::ParseOptions(
      text, &parsed,
      [](void* out, const session::OptionError& e) {
        auto* p = static_cast<std::string*>(out);
        if (p->empty()) *p = absl::StrCat("'", std::string(e.pair), "': ", e.why);
      },
      &problem);
  return problem.empty() ? absl::OkStatus() : UsageError(problem);
}

// The environment that a process was started with.
class Environment {
 public:
  explicit Environment(pid_t pid) {
    const auto text = inject::ReadProcFile(absl::StrCat("/proc/", pid, "/environ"));
    if (text.ok()) text_ = absl::StrCat(std::string(1, '\0'), *text);
  }
  std::string Get(const std::string& name) const {
    const std::string wanted = absl::StrCat(std::string(1, '\0'), name, "=");
    const size_t at = text_.find(wanted);
    return at == std::string::npos ? "" : std::string(text_.c_str() + at + wanted.size());
  }
  std::string First(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (std::string value = Get(name); !value.empty()) return value;
    }
    return "";
  }

 private:
  std::string text_;
};

std::string OnePartOfPath(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// What one letter behind % means. The variables are those of preload/launcher.h.
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
      return OnePartOfPath(
          environment.First({"GPUMEMTRACE_RANK", "RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK",
                             "MV2_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK",
                             "PALS_RANKID", "SLURM_PROCID", "JOB_COMPLETION_INDEX"}));
    case 'l':
      return OnePartOfPath(
          environment.First({"LOCAL_RANK", "HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                             "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "FLUX_TASK_LOCAL_ID",
                             "PALS_LOCAL_RANKID", "SLURM_LOCALID"}));
    case 'j':
      return OnePartOfPath(environment.First({"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
                                              "FLUX_JOB_ID", "RAY_JOB_ID", "TORCHELASTIC_RUN_ID"}));
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
  command->Argument("PID", &o->pid, "process");
  command->Option("--watch", &o->watch, "TIME",
                  "stay, say what leaks as it becomes known, detach after TIME (30m)");
  command->Option("-o,--output", &o->output, "PATTERN",
                  "recording to write; %h host, %p pid, %r rank, %l local rank, %j job id, "
                  "%q{VAR} a variable (default gpumemtrace.%h.%p.gmt)");
  command->Choice(
      "--method", &o->method, {"auto", "dormant", "inject"},
      "dormant: only through the library that the process was started with; inject: bring "
      "it in though its seccomp filters cannot be read");
  command->Flag("--check", &o->check, "only say whether it would work, and what is in the way");
  command->Flag("--all-ranks", &o->all_ranks, "all children of PID that use the GPU");
  command->Flag("--json", &o->json, "with --check or --watch: print JSON");
  command->Option("--stacks", &o->stacks, "KIND",
                  "native+python (the default), either, none, native:libgcc or native:libunwind");
  command->Flag("--free-stacks", &o->free_stacks, "record a stack at every free too");
  command->Option("--heap", &o->heap, "NAME+NAME", "driver, host, pytorch, nvtx (default: all)");
  command->Option("--cupti", &o->cupti, "MODE",
                  "auto (the default), full: also records of what the device did, or off");
  command->Option("--snapshot", &o->snapshot, "WHEN,WHEN", "oom, exit (default: both)");
  command->Option("--listen", &o->listen, "ADDRESS", "serve /metrics there (127.0.0.1:9400)");
  command->Option("--max-size", &o->max_size, "SIZE", "most that the recording may take on disk");
  command->Option("--max-time", &o->max_time, "TIME", "details of that long only");
  command->Option("--rotate", &o->rotate, "N", "how many parts the recording has at most");
  command->Flag("--quiet", &o->quiet, "print nothing but errors");
}

absl::StatusOr<std::string> OptionText(const AttachOptions& o) {
  std::vector<std::string> pairs;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) pairs.push_back(absl::StrCat(key, "=", value));
  };
  add("stacks", o.stacks);
  add("heap", o.heap);
  add("cupti", o.cupti);
  add("snapshot", absl::StrReplaceAll(o.snapshot, {{",", "+"}, {"=", ":"}}));
  add("listen", o.listen);
  add("max_size", o.max_size);
  add("max_time", o.max_time);
  add("rotate", o.rotate);
  if (o.free_stacks) pairs.push_back("free_stacks");
  const std::string text = absl::StrJoin(pairs, ",");
  if (absl::Status status = Check(text); !status.ok()) return status;
  return text;
}

absl::StatusOr<std::string> OutputFor(const std::string& pattern, pid_t pid) {
  constexpr int kMaxAttempts = 10000;
  std::error_code error;
  const fs::path wanted =
      fs::absolute(Expand(pattern.empty() ? kDefaultPattern : pattern, pid), error);
  if (!fs::is_directory(wanted.parent_path(), error)) {
    return absl::NotFoundError(absl::StrCat(wanted.parent_path().string(),
                                            " does not exist. Write elsewhere with: -o FILE"));
  }
  if (access(wanted.parent_path().c_str(), W_OK) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        wanted.parent_path().string(), " cannot be written to. Write elsewhere with: -o FILE"));
  }
  for (int n = 0; n < kMaxAttempts; ++n) {
    const fs::path path = n == 0
                              ? wanted
                              : wanted.parent_path() / absl::StrCat(wanted.stem().string(), ".", n,
                                                                    wanted.extension().string());
    if (!fs::exists(fs::symlink_status(path, error))) return path.string();
  }
  return absl::AlreadyExistsError(
      absl::StrCat(wanted.string(), ": no free name beside it. Use -o FILE"));
}

}  // namespace gmt::cli
