// gpumemtrace run: runs a command with the preloaded library, waits until all of its recordings are
// complete, and reports on them. The library does the recording; this verb sets up the environment.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/text.h"
#include "answers/oom/oom_answer.h"
#include "answers/report/report_answer.h"
#include "cli/command.h"
#include "cli/info_summary.h"
#include "cli/install.h"
#include "cli/open_recording.h"
#include "cli/rank_digest.h"
#include "cli/record/child_process.h"
#include "cli/record/recording_options.h"
#include "cli/record/run_log.h"
#include "cli/verbs.h"
#include "collector/sessions/session_summary.h"
#include "format/recording_reader.h"
#include "proto/gmt.pb.h"

namespace gmt::cli {
namespace {

constexpr int kRunFailure = 125;  // as in env(1): distinct from the command's own codes

struct RunArguments {
  RecordingOptions recording;
  std::string ring_size, exit_wait;
  bool follow_fork = false, no_follow_fork = false, no_digest = false, quiet = false;
  std::vector<std::string> command;
};

// ---- The environment ---------------------------------------------------------------------------

// Returns the value of GPUMEMTRACE: what the user has already set, then the options given here.
absl::StatusOr<std::string> OptionText(const RunArguments& o) {
  std::vector<std::string> pairs;
  if (const char* own = getenv("GPUMEMTRACE"); own != nullptr && *own != '\0') pairs.push_back(own);
  if (o.recording.output.find(',') != std::string::npos) {
    return UsageError("--output: a path cannot contain a comma");
  }
  AddPair("output", o.recording.output, pairs);
  AddPair("ring", o.ring_size, pairs);
  AddPair("exit_wait", o.exit_wait, pairs);
  const std::vector<std::string> common = o.recording.Pairs();
  pairs.insert(pairs.end(), common.begin(), common.end());
  if (o.follow_fork && o.no_follow_fork)
    return UsageError("--follow-fork and --no-follow-fork exclude each other");
  if (o.follow_fork) pairs.push_back("follow_fork=on");
  if (o.no_follow_fork) pairs.push_back("follow_fork=off");
  if (o.quiet) pairs.push_back("quiet");
  return absl::StrJoin(pairs, ",");
}

// NVTX loads one tool, by a path in the environment. If the user has set a tool, our library calls
// it. "./." is NVTX's own value for "no tool".
void AddNvtx(const std::string& library, ChildProcess::Environment* environment) {
  const char* chosen = getenv("NVTX_INJECTION64_PATH");
  const std::string_view path = chosen == nullptr ? "" : chosen;
  if (path == "./.") return;
  std::error_code none;
  if (!path.empty() && !std::filesystem::equivalent(path, library, none))
    environment->emplace_back("GPUMEMTRACE_NVTX_INJECTION", path);
  environment->emplace_back("NVTX_INJECTION64_PATH", library);
}

absl::StatusOr<ChildProcess::Environment> TracedEnvironment(const RunArguments& options,
                                                            const RunLog& log) {
  absl::StatusOr<std::string> library = PreloadLibrary();
  if (!library.ok()) return library.status();
  if (library->find_first_of(" :") != std::string::npos) {
    return absl::FailedPreconditionError(
        absl::StrCat(*library,
                     ": LD_PRELOAD does not support a path with a space or a colon. "
                     "Move gpumemtrace, or set GPUMEMTRACE_LIBRARY to a symbolic link "
                     "to the library"));
  }
  absl::StatusOr<std::string> text = OptionText(options);
  if (!text.ok()) return text.status();
  // Reports an invalid value before anything runs.
  if (absl::Status status = CheckOptionText(*text); !status.ok()) return status;
  const char* preload = getenv("LD_PRELOAD");
  ChildProcess::Environment environment = {
      {"LD_PRELOAD",
       preload != nullptr && *preload != '\0' ? absl::StrCat(*library, ":", preload) : *library},
      {"GPUMEMTRACE", *text},
      {"GPUMEMTRACE_RUN_ID", log.run_id()},
      {"GPUMEMTRACE_RUN_LOG", log.path()},
  };
  AddNvtx(*library, &environment);
  return environment;
}

// ---- The command -------------------------------------------------------------------------------

// Names the Python that runs scripts; `python -m gpumemtrace` sets it to its own.
constexpr char kInterpreter[] = "GPUMEMTRACE_PYTHON";

// Returns the command with an interpreter in front of it if its first word is a Python script: the
// one named in the environment, otherwise python3 if the script cannot be executed itself.
std::vector<std::string> WithInterpreter(std::vector<std::string> command) {
  const std::string& script = command[0];
  std::error_code none;
  if (!absl::EndsWith(script, ".py") || !std::filesystem::is_regular_file(script, none)) {
    return command;
  }
  const char* named = getenv(kInterpreter);
  if (named != nullptr && *named != '\0') {
    command.insert(command.begin(), named);
  } else if (!absl::StrContains(script, '/') || access(script.c_str(), X_OK) != 0) {
    command.insert(command.begin(), "python3");
  }
  return command;
}

// ---- Afterwards --------------------------------------------------------------------------------

volatile sig_atomic_t waiting_ended_by = 0;  // the number of a signal; 0: none

// While it exists, signals end the waiting instead of this process, which then removes its log.
class WaitingEndsBySignals {
 public:
  WaitingEndsBySignals() {
    struct sigaction action = {};
    action.sa_handler = [](int number) { waiting_ended_by = number; };
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], nullptr, &before_[i]);
      // Under nohup, or in the background of a script, the run is to continue.
      if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~WaitingEndsBySignals() {
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  WaitingEndsBySignals(const WaitingEndsBySignals&) = delete;
  WaitingEndsBySignals& operator=(const WaitingEndsBySignals&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(kSignals)] = {};
};

// Waits until no process writes any recording of the run any more. Descendants that outlive the
// command are part of the run. Returns nullopt if a signal ended the waiting. Removes the log.
std::optional<std::vector<RunEntry>> WaitForRecordings(RunLog log) {
  using namespace std::chrono_literals;
  const WaitingEndsBySignals interruptible;
  const auto start = std::chrono::steady_clock::now();
  bool said = false;
  while (true) {
    std::vector<RunEntry> entries = log.Read();
    const RunEntry* pending = nullptr;
    for (const RunEntry& entry : entries) {
      if (IsBeingWritten(entry.output)) pending = &entry;
    }
    if (pending == nullptr) return entries;
    if (waiting_ended_by != 0) {
      PrintNote(
          fmt::format("interrupted; the recording of process {} to {} continues. To see what "
                      "is being recorded: gpumemtrace list",
                      pending->pid, pending->output));
      return std::nullopt;
    }
    if (!said && std::chrono::steady_clock::now() - start > 5s && kill(pending->pid, 0) == 0) {
      PrintNote(fmt::format("waiting for process {}, which is still being recorded to {}",
                            pending->pid, pending->output));
      said = true;
    }
    std::this_thread::sleep_for(2ms);
  }
}

// Notes the sessions left by a collector that was killed, or that could not write to a full disk
// until its end.
void NoteIncompleteRecordings(const std::vector<RunEntry>& entries) {
  for (const RunEntry& entry : entries) {
    if (entry.session.empty()) continue;
    const auto session = collector::SummariseFile(entry.session);
    if (!session.ok() || session->state != collector::SessionState::kOrphaned) continue;
    PrintNote(
        fmt::format("process {}: {} is not complete. Its session holds the rest. Write it with: "
                    "gpumemtrace collect {}",
                    entry.pid, entry.output, entry.session));
  }
}

// What a recording says about the end of its process.
struct Outcome {
  bool failed = false;  // ended by a signal or with a nonzero exit code
  // An allocation failed, from which the process may have recovered.
  bool ran_out_of_memory = false;
};

Outcome OutcomeOf(const std::string& recording) {
  const auto read = Summarize(recording, answers::TextForm::kAsRecorded);
  if (!read.ok()) return {};
  const Exit& exit = read->summary->facts.exit();
  const bool failed =
      exit.kind() == Exit::SIGNALLED || (exit.kind() == Exit::EXITED && exit.code() != 0);
  return {failed, read->summary->out_of_memory > 0};
}

struct RecordedProcess {
  RunEntry entry;
  Outcome outcome;
};

// Returns the recording to report on in full. Processes that failed come first, then those that ran
// out of memory, then the largest file.
const RecordedProcess& MostImportant(const std::vector<RecordedProcess>& recordings) {
  const auto rank = [](const RecordedProcess& recorded) {
    std::error_code none;
    return std::tuple(recorded.outcome.failed, recorded.outcome.ran_out_of_memory,
                      std::filesystem::file_size(recorded.entry.output, none));
  };
  return *std::max_element(
      recordings.begin(), recordings.end(),
      [&](const RecordedProcess& a, const RecordedProcess& b) { return rank(a) < rank(b); });
}

// Explains why the process ran out of memory if it did. Otherwise reports what held the memory.
std::string AnswerOf(const RecordedProcess& recorded, const Terminal& terminal) {
  const std::string& path = recorded.entry.output;
  const auto recording = OpenRecording(path);
  if (!recording.ok()) return absl::StrCat(recording.status().message(), "\n");
  if (recorded.outcome.ran_out_of_memory) {
    const answers::OomAnswer oom(**recording);
    if (analysis::IsFailure(oom.report().verdict)) {
      return absl::StrCat(oom.Text(terminal), "What held the memory: gpumemtrace report ", path,
                          "\n");
    }
  }
  const auto report = answers::ReportAnswer::Make(**recording);
  return report.ok() ? report->Text(terminal) : absl::StrCat(report.status().message(), "\n");
}

// Prints to stderr, because stdout belongs to the target. Errors are ignored, so that the command's
// exit code is kept.
void PrintToStderr(const std::string& text) { fputs(text.c_str(), stderr); }

void ReportOn(const std::vector<RunEntry>& entries, const Terminal& terminal) {
  if (entries.empty()) {
    PrintNote("no GPU call was made; nothing was recorded");
    return;
  }
  std::vector<RecordedProcess> recordings;
  for (const RunEntry& entry : entries) recordings.push_back({entry, OutcomeOf(entry.output)});
  if (recordings.size() > 1) {
    for (const RecordedProcess& recorded : recordings) {
      const std::string answer = AnswerOf(recorded, terminal);
      PrintToStderr(fmt::format("process {}: {}: {}\n", recorded.entry.pid, recorded.entry.output,
                                answer.substr(0, answer.find('\n'))));
    }
    PrintToStderr("\n");
  }
  const RecordedProcess& chosen = MostImportant(recordings);
  PrintToStderr(
      fmt::format("{}\nRecording: {}\n", AnswerOf(chosen, terminal), chosen.entry.output));
}

// Reads a recording until it says whether its process is a rank of a job, which it does before the
// first events.
class RankFinder : public format::RecordingVisitor {
 public:
  bool is_rank() const { return is_rank_; }
  absl::Status OnEvents(const format::EventBatch&) override { return absl::CancelledError(); }
  absl::Status OnFacts(const Facts& facts) override {
    is_rank_ = is_rank_ || facts.has_rank();
    return is_rank_ ? absl::CancelledError() : absl::OkStatus();
  }

 private:
  bool is_rank_ = false;
};

bool IsOfRank(const std::string& recording) {
  const auto reader = format::RecordingReader::Open(recording);
  RankFinder finder;
  if (reader.ok()) (*reader)->Read(finder).IgnoreError();
  return finder.is_rank();
}

// Writes the digests of ranks beside their recordings, so that `ranks` need not read these. What
// fails here is reported by `ranks`, which tries again.
void WriteRankDigests(const std::vector<RunEntry>& entries) {
  for (const RunEntry& entry : entries) {
    if (!IsOfRank(entry.output)) continue;
    if (const auto read = ReadRank(entry.output); read.ok() && NoteUnstored(read->stored)) return;
  }
}

absl::StatusOr<int> Run(const RunArguments& options, const Terminal& terminal) {
  if (options.command.empty()) {
    return UsageError("run: no command is given. Try: gpumemtrace run -- python train.py");
  }
  absl::StatusOr<RunLog> log = RunLog::Create();
  absl::StatusOr<ChildProcess::Environment> environment =
      log.ok() ? TracedEnvironment(options, *log)
               : absl::StatusOr<ChildProcess::Environment>(log.status());
  if (!environment.ok()) {
    if (absl::IsInvalidArgument(environment.status())) return environment.status();
    PrintNote(std::string(environment.status().message()));
    return kRunFailure;
  }
  const std::vector<std::string> command = WithInterpreter(options.command);
  unsetenv(kInterpreter);
  ChildProcess child(command, *environment);
  const pid_t pid = child.pid();
  const ChildExit exit = child.Wait();
  if (!exit.started) {
    PrintNote(fmt::format("{}: {}", command[0], strerror(exit.exec_errno)));
    return exit.ShellCode();
  }
  for (const RunEntry& entry : log->Read()) {
    if (entry.pid == pid) NoteExit(entry, exit);
  }
  const auto entries = WaitForRecordings(*std::move(log));
  if (!entries.has_value()) return 128 + waiting_ended_by;
  if (!options.quiet) ReportOn(*entries, terminal);
  if (!options.no_digest) WriteRankDigests(*entries);
  NoteIncompleteRecordings(*entries);
  return exit.ShellCode();
}

}  // namespace

void AddRun(Program& program) {
  auto options = std::make_shared<RunArguments>();
  Command command =
      program.AddVerb("run", "Record a command and report on it",
                      [options](const Terminal& terminal) { return Run(*options, terminal); });
  options->recording.AddTo(command);
  command.Option("--ring-size", &options->ring_size, "SIZE",
                 "size of the event buffer between program and collector (default 16MiB)");
  command.Flag("--follow-fork", &options->follow_fork,
               "record children that the process forks (default)");
  command.Flag("--no-follow-fork", &options->no_follow_fork,
               "do not record children that the process forks");
  command.Option("--exit-wait", &options->exit_wait, "TIME",
                 "how long a normal exit waits for the collector (default 1s)");
  command.Flag("--no-digest", &options->no_digest,
               "do not write a digest of each rank beside its recording");
  command.Flag("--quiet", &options->quiet, "do not print the report and the path of the recording");
  command.CommandLine(&options->command);
}

}  // namespace gmt::cli
