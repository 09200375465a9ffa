#include "preload/lifecycle/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/base/clock.h"
#include "preload/base/message.h"
#include "preload/base/own_stack.h"
#include "preload/hooks/hook.h"
#include "preload/lifecycle/attach.h"
#include "preload/lifecycle/before_attach.h"
#include "preload/lifecycle/exit.h"
#include "preload/lifecycle/output_file.h"
#include "preload/lifecycle/spawn_collector.h"
#include "preload/lifecycle/start_late.h"
#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"
#include "preload/routes/route.h"
#include "session/launcher.h"
#include "session/session_file.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

extern char** environ;

namespace gmt::preload {
namespace {

// Variables of the target that explain its memory use. They are stored in the recording.
constexpr std::string_view kSettings[] = {
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",  "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUDA_VISIBLE_DEVICES",    "CUDA_MODULE_LOADING", "CUDA_DEVICE_ORDER",
    "CUBLAS_WORKSPACE_CONFIG", "NCCL_BUFFSIZE"};

void ReportOption(void*, const session::OptionError& e) {
  Say("GPUMEMTRACE: '%.*s': %s", static_cast<int>(e.pair.size()), e.pair.data(), e.why);
}

const char* EnvironmentOr(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value == nullptr ? otherwise : value;
}

// The environment does not apply if the library was injected.
const char* OptionsText() {
  return RouteTaken() == Route::kAttach ? InjectedOptions() : EnvironmentOr("GPUMEMTRACE", "");
}

// Memory for texts that are too large for a thread's stack, because the first GPU call may come
// from a thread with a small stack.
class Scratch {
 public:
  Scratch()
      : memory_(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Scratch() {
    if (*this) munmap(memory_, kSize);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  explicit operator bool() const { return memory_ != MAP_FAILED; }
  char* data() const { return static_cast<char*>(memory_); }
  static constexpr size_t kSize = 48 << 10;

 private:
  void* const memory_;
};

void AddCommandLine(session::InfoWriter* info) {
  const Scratch scratch;
  if (!scratch) return;
  char* text = scratch.data();
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t n = read(fd, text, Scratch::kSize);
  close(fd);
  std::string_view rest(text, n > 0 ? static_cast<size_t>(n) : 0);
  while (!rest.empty()) info->Add("arg", session::Cut(&rest, '\0'));
}

void AddSettings(session::InfoWriter* info) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string_view name = session::Slice(text, 0, text.find('='));
    bool wanted = session::IsLauncherVariable(name);
    for (const std::string_view setting : kSettings) wanted = wanted || name == setting;
    if (wanted) info->Add("setting", text);
  }
}

void AddLauncher(session::InfoWriter* info) {
  const session::Launcher launcher = session::Launcher::Read();
  info->Add("rank", launcher.rank);
  info->Add("local_rank", launcher.local_rank);
  info->Add("world_size", launcher.world_size);
  info->Add("node_rank", launcher.node_rank);
  info->Add("restart_count", launcher.restart_count);
  info->Add("job", launcher.job);
}

void AddOptions(std::string_view text, session::InfoWriter* info) {
  while (!text.empty()) {
    const std::string_view pair = session::Cut(&text, ',');
    if (!pair.empty()) info->Add("option", pair);
  }
}

void AddRoute(session::InfoWriter* info) {
  char line[1024] = "calls=";
  constexpr size_t kName = sizeof("calls=") - 1;
  if (DescribeLateRoute(line + kName, sizeof(line) - kName)) info->Add("source", line);
}

void AddApi(int number, const char* name, session::InfoWriter* info) {
  char line[128];
  const int n = snprintf(line, sizeof(line), "%d %s", number, name);
  info->Add("api", std::string_view(line, static_cast<size_t>(n)));
}

void AddApis(session::InfoWriter* info) {
  for (ApiId api = 1; ApiName(api) != nullptr; ++api) AddApi(api, ApiName(api), info);
  AddApi(session::kBeforeAttachApi, kBeforeAttachName, info);
}

void ComposeInfo(const char* output, const char* run_id, const char* shim, const char* unwinder,
                 session::InfoWriter* info) {
  char buffer[4096];
  info->Add("version", GMT_VERSION);
  info->Add("output", output);
  info->Add("run_id", run_id);
  const ssize_t exe = readlink("/proc/self/exe", buffer, sizeof(buffer));
  info->Add("exe", std::string_view(buffer, exe < 0 ? 0 : static_cast<size_t>(exe)));
  if (getcwd(buffer, sizeof(buffer)) != nullptr) info->Add("cwd", buffer);
  if (gethostname(buffer, 256) == 0) info->Add("hostname", buffer);
  info->Add("shim", shim);
  if (FindCollector(shim, buffer, sizeof(buffer))) info->Add("collector", buffer);
  AddLauncher(info);
  info->Add("unwinder", unwinder);
  AddCommandLine(info);
  AddOptions(OptionsText(), info);
  AddRoute(info);
  AddSettings(info);
  AddApis(info);
}

// Reports the session to `gpumemtrace run`: one line in the file that it names.
void EnterRunLog(const char* session, const char* output) {
  const char* log = getenv("GPUMEMTRACE_RUN_LOG");
  const int fd = log == nullptr ? -1 : open(log, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  char line[3 * PATH_MAX];
  const int n = snprintf(line, sizeof(line), "%d\t%s\t%s\n", getpid(), session, output);
  if (n > 0 && static_cast<size_t>(n) < sizeof(line))
    (void)!write(fd, line, static_cast<size_t>(n));
  close(fd);
}

const char* OwnPath() {
  Dl_info info;
  return dladdr(__ehdr_start, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Returns 0, or the errno of the failed step.
int StartCollector(Process* p, const session::CreatedSession& session, const OutputFile& output,
                   const char* shim) {
  char path[PATH_MAX];
  int error = ENOENT;
  if (FindCollector(shim, path, sizeof(path))) {
    const int pid_fd = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    error = SpawnCollector(path, session.fd, pid_fd, output.fd);
    if (pid_fd >= 0) close(pid_fd);
  }
  p->collector_started = error == 0;
  p->map.control().collector_errno.store(static_cast<uint32_t>(error), std::memory_order_relaxed);
  return error;
}

// Prints the one line that a user must see: where the recording is, or how to obtain it.
void Announce(const Process& p, const session::CreatedSession& session, const OutputFile& output,
              int collector_error) {
  if (collector_error != 0) {
    Say("no collector (%s): %s keeps what is recorded; afterwards: gpumemtrace collect %s",
        strerror(collector_error), session.path, session.path);
  } else if (!p.options.quiet) {
    Say("recording %d to %s%s%s%s", getpid(), output.path, output.moved ? " (" : "",
        output.moved ? strerror(output.error) : "", output.moved ? " at the requested place)" : "");
  }
}

session::SessionSizes SizesFor(const session::Options& options) {
  session::SessionSizes sizes;
  sizes.ring = options.ring_bytes / sizeof(session::Slot);
  return sizes;
}

void Use(Process* p, const session::CreatedSession& session) {
  madvise(session.base, session.size, MADV_DONTFORK);
  p->map = session.map;
  p->ring = session.map.ring_writer();
  p->live = session.map.live();
  p->stacks = session.map.stacks();
  p->in_flight = session.map.in_flight();
  p->contexts = session.map.contexts();
}

// Closes output's descriptor before printing anything, because it may have got the number of a
// closed stderr.
bool Create(Process* p, const OutputFile& output, const char* unwinder) {
  const char* run_id = EnvironmentOr("GPUMEMTRACE_RUN_ID", "");
  const char* shim = OwnPath();
  const Scratch scratch;
  if (!scratch) {
    close(output.fd);
    return false;
  }
  session::InfoWriter info(scratch.data(), Scratch::kSize);
  ComposeInfo(output.path, run_id, shim, unwinder, &info);

  session::CreatedSession session;
  const int error = session::CreateSession(SizesFor(p->options), info.text(), &session);
  if (error != 0) {
    close(output.fd);
    Say("not recording: no shared memory for the session: %s", strerror(error));
    return false;
  }
  Use(p, session);
  const int collector_error = StartCollector(p, session, output, shim);
  if (collector_error != 0) unlink(output.path);  // empty, and no process will write it
  close(session.fd);
  close(output.fd);
  if (collector_error != 0 && session.path[0] == '\0') {
    Say("not recording: no collector (%s), and no directory for a session to collect later",
        strerror(collector_error));
    munmap(session.base, session.size);
    p->map = session::SessionMap();
    return false;
  }
  EnterRunLog(session.path, output.path);
  Announce(*p, session, output, collector_error);
  WatchExit(session.path);
  return true;
}

// Options come from the environment, so a privileged process must not obey them.
bool Privileged() { return getauxval(AT_SECURE) != 0; }

// Creates just a session: no recording, no collector, no message.
bool CreateDormant(Process* p) {
  const Scratch scratch;
  if (!scratch) return false;
  session::InfoWriter info(scratch.data(), Scratch::kSize);
  ComposeInfo("", EnvironmentOr("GPUMEMTRACE_RUN_ID", ""), OwnPath(), "", &info);
  session::CreatedSession session;
  const auto attach_gate = RouteTaken() == Route::kAttach ? session::AttachGate::kInjected
                                                          : session::AttachGate::kDormant;
  const int error =
      session::CreateSession(SizesFor(p->options), info.text(), &session, attach_gate);
  if (error != 0) {
    Say("process %d cannot be attached to: no shared memory for its session: %s", getpid(),
        strerror(error));
    return false;
  }
  Use(p, session);
  close(session.fd);
  OpenAttachGate(p, session);
  WatchExit(session.path);
  return true;
}

Begun Start(Process* p) {
  PrepareClock();
  p->options = session::Options();
  session::ParseOptions(OptionsText(), &p->options, ReportOption, nullptr);
  if (!p->options.follow_fork && session::IsForkChild()) return Begun::kNothing;
  if (RouteTaken() == Route::kNone) return Begun::kNothing;
  if (p->options.dormant || RouteTaken() == Route::kAttach)
    return CreateDormant(p) ? Begun::kDormant : Begun::kNothing;

  OutputFile output = CreateOutputFile(p->options.output, EnvironmentOr("GPUMEMTRACE_RUN_ID", ""));
  if (output.fd < 0) {
    Say("not recording: %s cannot be written: %s", output.path, strerror(output.error));
    return Begun::kNothing;
  }
  const char* unwinder;
  p->capture = StackCapture::Find(p->options, &unwinder);
  if (p->options.python_stacks) p->python.Find();
  const bool created = Create(p, output, unwinder);
  if (!created) unlink(output.path);
  dlerror();  // failed lookups must not be visible to the target
  return created ? Begun::kRecording : Begun::kNothing;
}

struct Started {
  Process* process;
  Begun begun;
};

}  // namespace

Begun StartSession(Process* p) {
  if (Privileged()) return Begun::kNothing;
  Started started = {p, Begun::kNothing};
  const auto start = [](void* argument) {
    auto* s = static_cast<Started*>(argument);
    s->begun = Start(s->process);
  };
  if (!RunOnOwnStack(start, &started)) Say("not recording: not enough memory to start");
  return started.begun;
}

bool IsToBeDormant() {
  session::Options options;
  session::ParseOptions(
      OptionsText(), &options, [](void*, auto&) {}, nullptr);
  return options.dormant || RouteTaken() == Route::kAttach;
}

}  // namespace gmt::preload
