// gpumemtrace collect: makes the recording of a session whose collector, or whose process, is gone.

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

// The collector does the work; what it says on stderr is for the user. A signal that ends us (^C)
// makes it finish the file first.
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

// What `-o FILE --force` is written to until it is whole; nothing where FILE is created by the
// collector itself, which then never overwrites anything.
absl::StatusOr<std::optional<OutputFile>> Replacement(const CollectArguments& options) {
  if (options.output.empty()) return std::nullopt;
  std::error_code error;
  const auto status = std::filesystem::status(options.output, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return absl::InvalidArgumentError(absl::StrCat(options.output, " is no regular file"));
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

// A collector that was killed holds the session for some moments more.
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
  const CollectWish wish = {options.once, !options.output.empty()};
  if (absl::Status status = CheckCollectable(*session, wish); !status.ok()) return status;
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
    PrintNote(fmt::format("{} holds what had been recorded before; this one what the session held",
                          session->output));
  }
  return kDone;
}

}  // namespace

void AddCollect(Program& program) {
  auto options = std::make_shared<CollectArguments>();
  Command command =
      program.AddVerb("collect", "Record a session whose collector or process is gone",
                      [options](const Terminal&) { return Collect(*options); });
  command.Argument("SESSION", &options->session, "a session's file, its name, or a process's pid");
  command.Option("-o,--output", &options->output, "FILE",
                 "recording to write (default: where the process was to be recorded to)");
  command.Flag("--force", &options->force, "overwrite FILE");
  command.Flag("--once", &options->once,
               "record what there is now and leave a living process's session to others");
}

}  // namespace gmt::cli
