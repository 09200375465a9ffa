// gpumemtrace collect: writes the recording of a session whose collector or process is gone.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/record/child_process.h"
#include "cli/record/collect_session.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

using collector::SessionState;
using collector::SessionSummary;

struct CollectArguments {
  std::string session, output;
  bool force = false, once = false;
};

// Runs the collector, which does the work and prints errors on stderr. A signal that ends this
// program (^C) makes the collector finish the file first.
absl::Status RunCollector(const std::vector<std::string>& command, const SessionSummary& session) {
  unsetenv("LD_PRELOAD");
  unsetenv("GPUMEMTRACE_RUN_LOG");
  ChildProcess child(command, {});
  const ChildExit exit = child.Wait();
  if (!exit.started) {
    return absl::InternalError(
        absl::StrCat(command.front(), " cannot be started: ", strerror(exit.exec_errno)));
  }
  if (exit.ShellCode() == 0) return absl::OkStatus();
  const std::string how =
      exit.signalled ? absl::StrCat(" was ended by signal ", exit.code) : " could not collect it";
  return absl::InternalError(absl::StrCat(session.path, ": ", command.front(), how));
}

// Returns the temporary file that `-o FILE --force` writes to until it is complete. Returns nullopt
// if the collector itself creates FILE; the collector never overwrites a file.
absl::StatusOr<std::optional<OutputFile>> Replacement(const CollectArguments& options) {
  if (options.output.empty()) return std::nullopt;
  std::error_code error;
  const auto status = std::filesystem::status(options.output, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return absl::InvalidArgumentError(absl::StrCat(options.output, " is not a regular file"));
  absl::StatusOr<OutputFile> file = OutputFile::Create(options.output, options.force);
  if (!file.ok()) return file.status();
  if (!options.force) return std::nullopt;
  return std::optional<OutputFile>(*std::move(file));
}

void AnnounceIfLive(const CollectArguments& options, const SessionSummary& session,
                    const std::string& output) {
  if (session.state != SessionState::kUnattended || options.once) return;
  PrintNote(fmt::format(
      "recording process {} to {} until it ends; ^C stops the recording and leaves it complete",
      session.pid, output));
}

// A killed collector may hold the session's lock for a moment longer.
absl::StatusOr<SessionSummary> FindSettledSession(const std::string& name) {
  constexpr int kLooks = 20;
  absl::StatusOr<SessionSummary> session = FindSession(name);
  for (int i = 0; i < kLooks && session.ok() && session->state == SessionState::kRecording; ++i) {
    usleep(10000);
    session = FindSession(name);
  }
  return session;
}

absl::StatusOr<int> Collect(const CollectArguments& options) {
  absl::StatusOr<SessionSummary> session = FindSettledSession(options.session);
  if (!session.ok()) return session.status();
  const CollectRequest request = {options.once, !options.output.empty()};
  if (absl::Status status = CheckCollectable(*session, request); !status.ok()) return status;
  absl::StatusOr<std::string> program = CollectorFor(*session);
  if (!program.ok()) return program.status();
  absl::StatusOr<std::string> output =
      options.output.empty() ? FreeOutput(*session) : absl::StatusOr<std::string>(options.output);
  if (!output.ok()) return output.status();
  absl::StatusOr<std::optional<OutputFile>> replacement = Replacement(options);
  if (!replacement.ok()) return replacement.status();

  AnnounceIfLive(options, *session, *output);
  std::vector<std::string> command = {*program, "--session", session->path, "--output",
                                      replacement->has_value() ? (*replacement)->path() : *output};
  if (options.once) command.push_back("--once");
  if (absl::Status status = RunCollector(command, *session); !status.ok()) return status;
  if (replacement->has_value()) {
    if (absl::Status status = (*replacement)->Commit(); !status.ok()) return status;
  }
  fmt::print("{}\n", *output);
  if (options.output.empty() && *output != session->output) {
    PrintNote(
        fmt::format("{} holds what was recorded earlier; this file holds what was in the "
                    "session",
                    session->output));
  }
  return kDone;
}

}  // namespace

void AddCollect(Program& program) {
  auto options = std::make_shared<CollectArguments>();
  Command command =
      program.AddVerb("collect",
                      "Write the recording of a session whose collector or process is "
                      "gone",
                      [options](const Terminal&) { return Collect(*options); });
  command.Argument("SESSION", &options->session, "session file, session name or process ID");
  command.Option("-o,--output", &options->output, "FILE",
                 "recording to write (default: the path that the process announced)");
  command.Flag("--force", &options->force, "overwrite FILE");
  command.Flag("--once", &options->once,
               "write what the session holds now and exit, even if its process is alive");
}

}  // namespace gmt::cli
