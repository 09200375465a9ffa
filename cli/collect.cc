// gpumemtrace collect: makes the recording of a session whose collector, or whose process, is gone.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/install.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "session/session_file.h"

namespace gmt::cli {
namespace {

struct Options {
  std::string session, output;
  bool force = false;
};

// Where the process was to be recorded to, as its session says; empty where it does not.
absl::StatusOr<std::string> OutputOf(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
  session::OpenedSession session = session::OpenSession(fd);
  close(fd);
  std::string output;
  if (session.map) {
    const std::string_view info(session.map.section<char>(session::kInfo),
                                session.map.count(session::kInfo));
    session::ForEachInfo(info, [&](std::string_view name, std::string_view value) {
      if (name == "output") output = std::string(value);
    });
  }
  const absl::Status status =
      session.error == nullptr
          ? absl::OkStatus()
          : absl::InvalidArgumentError(absl::StrCat(path, ": ", session.error));
  session::CloseSession(&session);
  if (!status.ok()) return status;
  return output;
}

// The collector does the work; what it says on stderr is for the user.
absl::Status RunCollector(const std::string& program, const std::string& session,
                          const std::string& output) {
  const pid_t child = fork();
  if (child == 0) {
    execl(program.c_str(), "gpumemtrace-collector", "--session", session.c_str(), "--output",
          output.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0 || status != 0) {
    return absl::InternalError(absl::StrCat(session, ": ", program, " could not collect it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Collect(const Options& options) {
  absl::StatusOr<std::string> output = OutputOf(options.session);
  if (!output.ok()) return output.status();
  if (!options.output.empty()) *output = options.output;
  if (output->empty()) return UsageError("collect: name the recording to write with -o FILE");
  absl::StatusOr<std::string> program = CollectorProgram();
  if (!program.ok()) return program.status();
  absl::StatusOr<OutputFile> file = OutputFile::Create(*output, options.force);
  if (!file.ok()) return file.status();
  if (absl::Status status = RunCollector(*program, options.session, file->path()); !status.ok()) {
    return status;
  }
  if (absl::Status status = file->Commit(); !status.ok()) return status;
  fmt::print("{}\n", *output);
  return kDone;
}

}  // namespace

void AddCollect(Program& program) {
  auto options = std::make_shared<Options>();
  Command command =
      program.AddVerb("collect", "Record a session whose collector or process is gone",
                      [options](const Terminal&) { return Collect(*options); });
  command.Argument("SESSION", &options->session, "the session's file");
  command.Option("-o,--output", &options->output, "FILE",
                 "recording to write (default: where the process was to be recorded to)");
  command.Flag("--force", &options->force, "overwrite FILE");
}

}  // namespace gmt::cli
