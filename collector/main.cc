// gpumemtrace-collector: reads the session of one traced process and writes its recording.
//
// The preloaded library starts it with descriptors 3 to 5 (session/layout.h, kSessionFd ...) and no
// arguments. Users and `gpumemtrace collect` of any release start it as
//
//   gpumemtrace-collector --session FILE --output FILE [--listen ADDRESS] [--once]
//
// A parent that has opened files already passes them as descriptors: --session-fd N, --output-fd N
// (these files) and --target-fd N (a pidfd of the process, whose pid in the session differs if it
// runs in a container).
//
// When started by the library it prints nothing, unless GPUMEMTRACE_COLLECTOR_LOG names a file to
// append to. Otherwise it reports errors on stderr. Exit codes: 0: the recording is complete, 1: it
// is not, 2: wrong usage.

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collector/arguments.h"
#include "collector/collector.h"
#include "collector/control/framing.h"
#include "collector/control/server.h"
#include "collector/devices/nvml.h"
#include "collector/log.h"
#include "collector/sessions/bus_guard.h"
#include "collector/sessions/libraries.h"
#include "collector/sessions/session_claim.h"
#include "collector/sessions/session_summary.h"
#include "collector/sessions/session_sweep.h"
#include "collector/sessions/socket_path.h"
#include "format/definitions_builder.h"
#include "format/version.h"

namespace gmt::collector {
namespace {

constexpr int kMaxOutputs = 16;  // if more are taken away, the user does not want a recording

std::atomic<Collector*> running = nullptr;
std::atomic<bool> stop_requested = false;

void StopOnSignal(int) {
  stop_requested = true;
  if (Collector* collector = running) collector->RequestStop();
}

void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = StopOnSignal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit is an error like a full disk
  BusGuard::Install();
}

absl::Status Errno(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

void Say(absl::string_view message) {
  const std::string line = absl::StrCat("gpumemtrace-collector: ", message, "\n");
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

// Creates the output unless the parent has, and only after the session has been claimed.
absl::Status OpenOutput(const Arguments& arguments, Descriptors* fds) {
  if (arguments.output.empty()) return absl::OkStatus();
  if (arguments.output_fd >= 0) {
    fds->output = arguments.output_fd;
    fcntl(fds->output, F_SETFD, FD_CLOEXEC);
    return absl::OkStatus();
  }
  fds->output = open(arguments.output.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fds->output < 0) return Errno(arguments.output);
  flock(fds->output, LOCK_EX | LOCK_NB);  // marks the file as being written, as the library does
  return absl::OkStatus();
}

// Informs a waiting `gpumemtrace run` that this session is now recorded to another file.
void EnterRunLog(uint64_t pid, const std::string& session, const std::string& output) {
  const char* log = std::getenv("GPUMEMTRACE_RUN_LOG");
  const int fd = log == nullptr ? -1 : open(log, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  const std::string line = absl::StrCat(pid, "\t", session, "\t", output, "\n");
  (void)!write(fd, line.data(), line.size());
  close(fd);
}

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string ListenOption(const SessionInfo& info) {
  for (auto it = info.options.rbegin(); it != info.options.rend(); ++it) {
    if (it->first == "listen") return it->second;
  }
  return "";
}

metrics::Identity IdentityOf(const SessionInfo& info) {
  metrics::Identity identity;
  identity.hostname = info.hostname;
  identity.rank = info.rank;
  identity.local_rank = info.local_rank;
  identity.train_job = info.job;
  identity.version = std::string(format::ToolVersion());
  for (const auto& [name, value] : info.settings) {
    if (name == "SLURM_JOB_ID") identity.slurm_job_id = value;
  }
  return identity;
}

// The recording of one process's session, in one or more files.
class Recording {
 public:
  Recording(SessionClaim* claim, Target* target, int output, const Arguments& arguments)
      : claim_(claim), target_(target), clock_(target->pidfd()), arguments_(arguments) {
    parts_ = std::make_unique<PartFiles>(output);
  }

  absl::Status Run() {
    const bool once = arguments_.once;
    if (!once) Serve();
    auto file = std::make_unique<OutputFile>(parts_->fd());
    absl::Status status;
    for (int n = 0; n < kMaxOutputs && file != nullptr; ++n) {
      auto collector = Collector::Start(MakeDependencies(), std::move(file));
      if (!collector.ok()) return collector.status();
      if (n == 0) Sweep();
      running = collector->get();
      if (once || stop_requested) (*collector)->RequestStop();
      status = (*collector)->Run();
      running = nullptr;
      target_has_ended_ = (*collector)->TargetHasEnded();
      file = (*collector)->TakeNextOutput();
    }
    if (status.ok()) status = OutputFile(parts_->fd()).SyncToDisk();
    return status;
  }
  // Removes the control socket's name. Must come before the session's name is removed, because no
  // client looks for the socket after that, and before another collector creates a socket of that
  // name.
  void RemoveName() {
    if (server_ != nullptr) server_->RemoveName();
  }
  bool target_has_ended() const { return target_has_ended_; }

 private:
  CollectorDependencies MakeDependencies() {
    CollectorDependencies deps;
    deps.session = claim_->session();
    deps.target = target_;
    deps.clock = &clock_;
    deps.is_cut = [this] { return claim_->IsCut(); };
    deps.next_output = [this] { return NextOutput(); };
    deps.output_note = note_;
    deps.mailbox = server_ == nullptr ? nullptr : &mailbox_;
    deps.listen_note = listen_note_;
    deps.output_path = PathOfDescriptor(parts_->fd());
    deps.parts = parts_.get();
    deps.device_source = [this] {
      const char* nvml = std::getenv("GPUMEMTRACE_NVML");
      return std::make_unique<Nvml>(nvml == nullptr ? "" : nvml,
                                    [pid = target_->pid()] { return MappedDriver(pid); });
    };
    return deps;
  }

  absl::StatusOr<std::unique_ptr<OutputFile>> NextOutput() {
    const std::string before = PathOfDescriptor(parts_->fd());
    auto next = CreateNextOutput(parts_->fd());
    if (!next.ok()) {
      Log(std::string(next.status().message()));
      return next.status();
    }
    // The old file stays open, because its collector still uses it.
    former_parts_.push_back(std::exchange(parts_, std::make_unique<PartFiles>(next->fd)));
    note_ = absl::StrCat("began anew: ", before, " was deleted or truncated while it was written");
    Log(absl::StrCat(note_, "; continuing in ", next->path));
    EnterRunLog(target_->pid(), claim_->Path(), next->path);
    return std::make_unique<OutputFile>(next->fd);
  }

  // A failure to serve clients does not prevent the recording.
  void Serve() {
    control::ServerOptions options;
    options.session = claim_->Path();
    if (options.session.empty()) options.session = control::NameByCollector(getpid(), claim_->fd());
    options.hello.set_version(control::kVersion);
    options.hello.set_pid(target_->pid());
    options.hello.set_collector_pid(static_cast<uint64_t>(getpid()));
    options.hello.set_release(std::string(format::ToolVersion()));
    options.hello.set_recording(PathOfDescriptor(parts_->fd()));
    const SessionInfo info = ReadSessionInfo(claim_->session());
    options.listen = arguments_.listen.empty() ? ListenOption(info) : arguments_.listen;
    options.identity = IdentityOf(info);
    auto server = control::Server::Start(options, &mailbox_);
    if (!server.ok()) return Log(absl::StrCat("no control socket: ", server.status().message()));
    server_ = *std::move(server);
    if (const std::string why = server_->listen_problem(); !why.empty()) {
      listen_note_ = absl::StrCat("off: ", why);
      Log(absl::StrCat("no metrics: ", why));
      if (!arguments_.session.empty())
        Say(absl::StrCat("no metrics: ", why, "; recording continues"));
    } else if (!server_->listening().empty()) {
      listen_note_ = absl::StrCat("on at ", server_->listening());
    }
  }

  void Sweep() {
    const std::string own = claim_->Path();
    if (own.empty()) return;
    for (const std::string& path : RemoveDeadSessions(DirectoryOf(own)))
      Log(absl::StrCat("removed the dead session ", path));
  }

  SessionClaim* claim_;
  Target* target_;
  SystemClock clock_;
  const Arguments& arguments_;
  std::unique_ptr<PartFiles> parts_;
  std::vector<std::unique_ptr<PartFiles>> former_parts_;
  std::string note_, listen_note_;
  bool target_has_ended_ = false;
  control::Mailbox mailbox_;
  std::unique_ptr<control::Server> server_;
};

// Without a pidfd the process is known only by its pid, which is meaningless in another PID
// namespace.
bool MayRemove(const session::SessionMap& session, bool has_pidfd) {
  return has_pidfd || ProcessIsGone(session.header()) ||
         session.control().closing.load() != session::Handshake::kNone;
}

absl::Status Collect(const Arguments& arguments) {
  Descriptors fds;
  if (!arguments.session.empty()) {
    fds.session =
        arguments.session_fd >= 0 ? arguments.session_fd : OpenSessionFile(arguments.session);
    if (fds.session < 0) return Errno(arguments.session);
    fds.target = arguments.target_fd;
  }
  HandleSignals();
  auto claim = SessionClaim::Take(fds.session);
  if (!claim.ok()) return claim.status();
  const session::SessionMap session = (*claim)->session();
  const bool has_pidfd = fcntl(fds.target, F_GETFD) >= 0;
  Target target(session.header(), has_pidfd ? fds.target : -1);
  if (session.has_attach_gate()) {
    SystemClock clock(target.pidfd());
    absl::Status status = (*claim)->WaitUntilRecorded(
        &target, &clock, [&] { return arguments.once || stop_requested.load(); });
    if (!status.ok()) return status;
  }
  if (absl::Status status = OpenOutput(arguments, &fds); !status.ok()) return status;
  const bool was_alive = target.IsAlive();
  Recording recording(claim->get(), &target, fds.output, arguments);
  Log(absl::StrCat("recording process ", target.pid()));
  absl::Status status = recording.Run();
  recording.RemoveName();
  // The session still has everything, unless the process was alive and has lost some of it.
  if (!status.ok() && !was_alive && !arguments.output.empty()) unlink(arguments.output.c_str());
  if (status.ok()) (*claim)->ReleaseAtEnd();
  if (status.ok() && recording.target_has_ended() && MayRemove(session, has_pidfd))
    status = (*claim)->RemoveName();
  return status;
}

}  // namespace
}  // namespace gmt::collector

int main(int argc, char** argv) {
  using namespace gmt::collector;
  if (const char* path = std::getenv("GPUMEMTRACE_COLLECTOR_LOG")) LogTo(path);
  const auto arguments = ParseArguments(argc, argv);
  if (!arguments.ok()) {
    Say(arguments.status().message());
    return 2;
  }
  const absl::Status status = Collect(*arguments);
  Log(status.ok() ? "the recording is complete" : std::string(status.message()));
  if (!status.ok() && !arguments->session.empty()) Say(status.message());
  return status.ok() ? 0 : 1;
}
