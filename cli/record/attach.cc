// gpumemtrace attach: records a process that is already running, until it is detached or ends.
//
//   1. If the process was started with GPUMEMTRACE=dormant, or was attached to before, it has a
//      session with an attach gate. Otherwise the library is injected into it (collector/inject).
//   2. A field of that session asks the process to record from its next GPU call on.
//   3. A collector is started, which keeps running after this program has ended.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/live/watch.h"
#include "cli/record/attach_check.h"
#include "cli/record/attach_options.h"
#include "cli/record/attach_recording.h"
#include "cli/verbs.h"
#include "collector/control/client.h"
#include "collector/inject/target_info.h"
#include "session/options.h"

namespace gmt::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

using Recordings = std::vector<std::unique_ptr<AttachRecording>>;

constexpr std::chrono::seconds kMaxWaitForOthers{10};

volatile sig_atomic_t interrupted = 0;
void NoteInterrupt(int) { interrupted = 1; }

void InstallSignalHandlers() {
  struct sigaction action = {};
  action.sa_handler = NoteInterrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
}

void Say(const AttachOptions& options, const std::string& note) {
  if (!options.quiet) PrintNote(note);
}

void SayBegun(const AttachOptions& options, const AttachRecording& recording) {
  if (!options.quiet) fmt::print("recording {} to {}\n", recording.pid(), recording.output());
  std::fflush(stdout);  // before the next message on stderr
}

// Returns why a process that has not begun to record is not waited for any longer, or OK while it
// is. If several are attached, those that call the GPU do not wait long for one that does not.
absl::Status WhyNotToWait(AttachRecording* recording, bool others_wait) {
  absl::Status problem = recording->Problem();
  if (!problem.ok()) return problem;
  if (interrupted != 0)
    return absl::CancelledError(
        absl::StrCat("process ", recording->pid(), " is not recorded: interrupted"));
  if (others_wait)
    return absl::DeadlineExceededError(
        absl::StrCat("process ", recording->pid(),
                     " is not recorded: it has not called the GPU for ", kMaxWaitForOthers.count(),
                     " s. To attach to it alone: gpumemtrace attach ", recording->pid()));
  return absl::OkStatus();
}

// Waits until all processes record. Each begins at its next GPU call, which may be far away.
// Cancels and removes those that cannot begin, and returns the reason for the last of them.
// `alone`: only one process was to be recorded; the caller then reports the reason.
absl::Status AwaitBegin(const AttachOptions& options, bool alone, Recordings* recordings) {
  const auto begin = steady_clock::now();
  auto last_begun = steady_clock::time_point::max();
  absl::Status failure;
  Recordings begun, waiting = std::move(*recordings);
  bool said = false;
  while (!waiting.empty()) {
    const auto now = steady_clock::now();
    const bool others_wait = !begun.empty() && now - last_begun > kMaxWaitForOthers;
    for (auto& recording : waiting) {
      if (recording->HasBegun()) {
        SayBegun(options, *recording);
        last_begun = now;
        begun.push_back(std::move(recording));
        continue;
      }
      absl::Status problem = WhyNotToWait(recording.get(), others_wait);
      if (problem.ok()) continue;
      recording->Cancel();
      recording.reset();
      if (!alone) PrintNote(std::string(problem.message()));
      failure = std::move(problem);
    }
    std::erase(waiting, nullptr);
    if (!said && !waiting.empty() && now - begin > milliseconds(1000)) {
      for (const auto& recording : waiting)
        Say(options, fmt::format("waiting for the next GPU call of process {}; ^C gives up",
                                 recording->pid()));
      said = true;
    }
    usleep(5000);
  }
  // Sort by PID, regardless of which began first.
  std::sort(begun.begin(), begun.end(),
            [](const auto& a, const auto& b) { return a->pid() < b->pid(); });
  *recordings = std::move(begun);
  return failure;
}

// ---- --watch -----------------------------------------------------------------------------------

bool AllHaveEnded(const Recordings& recordings) {
  return std::all_of(recordings.begin(), recordings.end(),
                     [](const auto& recording) { return recording->HasEnded(); });
}

// Waits if nothing is to be printed, or after the collector has stopped sending answers.
void WaitSilently(steady_clock::time_point end, const Recordings& recordings) {
  while (interrupted == 0 && steady_clock::now() < end && !AllHaveEnded(recordings)) usleep(20000);
}

// Returns the label of a process in the output of several: "4711 rank 1".
std::string ProcessLabel(pid_t pid) {
  const std::string rank = RankOf(pid);
  return rank.empty() ? absl::StrCat(pid) : absl::StrCat(pid, " rank ", rank);
}

WatchOptions OptionsOf(const AttachOptions& options, const Terminal& terminal, uint64_t duration_ns,
                       bool alone, AttachRecording* recording) {
  WatchOptions watch;
  watch.label = alone ? "" : ProcessLabel(recording->pid());
  watch.pid = recording->pid();
  watch.recording = recording->output();
  watch.duration_ns = static_cast<int64_t>(duration_ns);
  watch.json = options.json;
  watch.stopped = [recording] { return interrupted != 0 || recording->HasEnded(); };
  watch.terminal = terminal;
  // Lines of several processes cannot be rewritten in one place.
  watch.terminal.is_terminal &= alone;
  return watch;
}

// Retries, because a collector that has just started may not listen yet.
absl::StatusOr<std::unique_ptr<control::Client>> ConnectTo(const WatchOptions& watch,
                                                           const std::string& session) {
  const auto end = steady_clock::now() + std::chrono::seconds(5);
  auto client = control::Client::Connect(session);
  while (!client.ok() && !watch.stopped() && steady_clock::now() < end) {
    usleep(20000);
    client = control::Client::Connect(session);
  }
  return client;
}

// Prints what is known of leaks, as it becomes known. A collector that ends meanwhile has sent
// everything.
absl::Status WatchOne(const WatchOptions& watch, const std::string& session) {
  auto client = ConnectTo(watch, session);
  if (!client.ok()) return client.status();
  if (!watch.json) (*client)->MakeStringsPrintable();
  const auto subscribe = [&](const std::function<bool(const control::Reply&)>& take) {
    control::Subscribe request;
    request.set_what(control::Subscribe::LEAKS);
    request.set_interval_ms(1000);
    // A collector that has just started may be too busy reading to answer.
    const auto end = steady_clock::now() + std::chrono::nanoseconds(watch.duration_ns);
    bool has_answered = false;
    return (*client)->Subscribe(request, [&](const control::Reply& reply) {
      has_answered |= reply.error().empty();
      return has_answered ? take(reply) : !watch.stopped() && steady_clock::now() < end;
    });
  };
  return Watch(watch, subscribe).status();
}

// Watches all processes at once, each on its own thread, because Subscribe() blocks. Returns when
// all watches are over.
void WatchEach(const std::vector<WatchOptions>& watches, const Recordings& recordings) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < watches.size(); ++i) {
    threads.emplace_back([&, i] {
      const absl::Status status = WatchOne(watches[i], recordings[i]->session());
      if (status.ok() || recordings[i]->HasEnded()) return;
      PrintNote(absl::StrCat(watches[i].label, watches[i].label.empty() ? "" : ": ",
                             std::string(status.message())));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Ends all recordings at the same time. Returns which of them are complete.
std::vector<bool> EndAll(const AttachOptions& options, const Recordings& recordings) {
  std::vector<bool> complete;
  for (const auto& recording : recordings) recording->Withdraw();
  for (const auto& recording : recordings) {
    complete.push_back(recording->End());
    if (complete.back()) {
      Say(options, fmt::format("{} is complete. To look for leaks: gpumemtrace leaks {}",
                               recording->output(), recording->output()));
    } else {
      const std::string why = recording->Complaint();
      PrintNote(fmt::format("{} is not complete: {}", recording->output(),
                            !why.empty()            ? why
                            : recording->HasEnded() ? "its collector has died. To see whether the "
                                                      "rest can be collected: gpumemtrace list"
                                                    : "its collector is still writing. To see its "
                                                      "state: gpumemtrace list"));
    }
  }
  return complete;
}

// Stays attached for that time, until ^C, or until the processes end. Leaves complete recordings.
int WatchAll(const AttachOptions& options, const Terminal& terminal, uint64_t duration_ns,
             const Recordings& recordings) {
  const auto end = steady_clock::now() + std::chrono::nanoseconds(duration_ns);
  Say(options, fmt::format("watching for {}; ^C ends it earlier", options.watch));
  std::vector<WatchOptions> watches;
  for (const auto& recording : recordings) {
    watches.push_back(
        OptionsOf(options, terminal, duration_ns, recordings.size() == 1, recording.get()));
  }
  if (!options.quiet) WatchEach(watches, recordings);
  WaitSilently(end, recordings);
  const std::vector<bool> complete = EndAll(options, recordings);
  int code = kDone;
  for (size_t i = 0; i < watches.size(); ++i) {
    const absl::Status answer =
        complete[i] && !options.quiet ? PrintFinalLeaks(watches[i]) : absl::OkStatus();
    if (!answer.ok()) PrintNote(std::string(answer.message()));
    if (!complete[i] || !answer.ok()) code = kFailed;
  }
  return code;
}

// ---- Which processes ---------------------------------------------------------------------------

// Launchers and shells use no GPU themselves, but their children may.
absl::StatusOr<std::vector<pid_t>> Targets(const AttachOptions& options, pid_t pid) {
  const bool uses_gpu = inject::UsesGpu(pid);
  if (uses_gpu && !options.all_ranks) return std::vector<pid_t>{pid};
  std::vector<pid_t> children = inject::DescendantsThatUseGpu(pid);
  if (options.all_ranks) {
    if (uses_gpu) children.insert(children.begin(), pid);
    if (!children.empty()) return children;
    return absl::FailedPreconditionError(
        absl::StrCat("neither process ", pid, " nor a child of it uses a GPU now"));
  }
  if (children.empty()) return std::vector<pid_t>{pid};
  std::string offer =
      absl::StrCat("process ", pid, " (", inject::CommandLineOf(pid, 40), ") uses no GPU, but ",
                   children.size() == 1 ? "a child" : "children", " of it ",
                   children.size() == 1 ? "does" : "do", ":");
  for (const pid_t child : children) {
    absl::StrAppend(&offer, "\n  gpumemtrace attach ", child, "    # ",
                    inject::CommandLineOf(child, 60));
  }
  if (children.size() > 1)
    absl::StrAppend(&offer, "\nAll of them: gpumemtrace attach ", pid, " --all-ranks");
  return absl::FailedPreconditionError(offer);
}

absl::StatusOr<int> RecordAll(const AttachOptions& options, const Terminal& terminal,
                              const std::vector<pid_t>& pids) {
  absl::StatusOr<std::string> text = OptionText(options);
  if (!text.ok()) return text.status();
  uint64_t watch_ns = 0;
  if (!options.watch.empty() && !session::ParseDuration(options.watch, &watch_ns))
    return UsageError(
        absl::StrCat("--watch: '", options.watch, "' is not a duration. Try: --watch 30m"));
  Recordings recordings;
  absl::Status failure;
  for (const pid_t pid : pids) {
    auto recording = AttachRecording::Begin(options, *text, pid);
    if (recording.ok()) {
      recordings.push_back(*std::move(recording));
    } else if (pids.size() == 1) {
      return recording.status();
    } else {
      failure = recording.status();
      PrintNote(std::string(failure.message()));
    }
  }
  if (absl::Status late = AwaitBegin(options, pids.size() == 1, &recordings); !late.ok())
    failure = std::move(late);
  if (pids.size() == 1 && !failure.ok()) return failure;
  int code = failure.ok() ? kDone : kFailed;
  if (!options.watch.empty())
    return std::max(code, WatchAll(options, terminal, watch_ns, recordings));
  for (const auto& recording : recordings)
    Say(options,
        fmt::format("recording until the process ends. To stop earlier: gpumemtrace detach {}",
                    recording->pid()));
  return code;
}

absl::StatusOr<int> Attach(const AttachOptions& options, const Terminal& terminal) {
  pid_t pid;
  if (!absl::SimpleAtoi(options.pid, &pid) || pid <= 0)
    return UsageError(absl::StrCat("attach: '", options.pid, "' is not a process ID"));
  if (options.check) return CheckAttach(pid, options.json);
  InstallSignalHandlers();
  absl::StatusOr<std::vector<pid_t>> pids = Targets(options, pid);
  if (!pids.ok()) return pids.status();
  if (pids->size() > 1 && !options.recording.output.empty() &&
      options.recording.output.find('%') == std::string::npos)
    return UsageError(
        "--output: several recordings need a pattern: -o run.%p.gmt, or %r for the rank");
  return RecordAll(options, terminal, *pids);
}

}  // namespace

void AddAttach(Program& program) {
  auto options = std::make_shared<AttachOptions>();
  Command command =
      program.AddVerb("attach", "Record a process that is already running",
                      [options](const Terminal& terminal) { return Attach(*options, terminal); });
  AddAttachOptions(&command, options.get());
}

}  // namespace gmt::cli
