#include "cli/record/collect_session.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/command.h"
#include "cli/install.h"
#include "collector/sessions/session_search.h"
#include "session/session_file.h"

namespace gmt::cli {
namespace {

namespace fs = std::filesystem;
using collector::SessionState;
using collector::SessionSummary;

absl::StatusOr<SessionSummary> FindByPid(uint64_t pid) {
  std::vector<SessionSummary> found = collector::FindSessions();
  std::erase_if(found, [&](const SessionSummary& s) { return s.pid != pid; });
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("process ", pid, " has no session. To see all sessions: gpumemtrace list"));
  }
  // A process that replaced its program (exec) has one session for each program.
  if (found.size() > 1) {
    const std::string paths = absl::StrJoin(
        found, "\n  ",
        [](std::string* out, const SessionSummary& s) { absl::StrAppend(out, s.path); });
    return absl::FailedPreconditionError(absl::StrCat("process ", pid, " has ", found.size(),
                                                      " sessions; name one of them:\n  ", paths));
  }
  return found.front();
}

bool IsProgram(const std::string& path) {
  return !path.empty() && access(path.c_str(), X_OK) == 0 && !fs::is_directory(path);
}

std::string Recorded(const SessionSummary& session) {
  return session.output.empty() ? "" : absl::StrCat(": ", session.output);
}

}  // namespace

absl::StatusOr<SessionSummary> FindSession(const std::string& name) {
  std::error_code error;
  const bool is_path = name.find('/') != std::string::npos || fs::exists(name, error);
  uint64_t pid;
  if (!is_path && absl::SimpleAtoi(name, &pid)) return FindByPid(pid);
  if (is_path) return collector::SummariseFile(name);
  char directory[PATH_MAX];
  for (int n = 0; session::SessionDirectory(n, directory); ++n) {
    const fs::path path = fs::path(directory) / name;
    if (directory[0] != '\0' && fs::exists(path, error))
      return collector::SummariseFile(path.string());
  }
  return absl::NotFoundError(
      absl::StrCat(name, ": there is no such session. To see all sessions: gpumemtrace list"));
}

absl::Status CheckCollectable(const SessionSummary& s, const CollectRequest& request) {
  switch (s.state) {
    case SessionState::kRecording:
      return absl::FailedPreconditionError(
          absl::StrCat(s.path, ": a collector",
                       s.collector_pid == 0 ? "" : absl::StrCat(" (process ", s.collector_pid, ")"),
                       " is already recording it", Recorded(s)));
    case SessionState::kCollected:
      if (request.elsewhere) return absl::OkStatus();
      return absl::FailedPreconditionError(absl::StrCat(
          s.path, ": its recording is complete", Recorded(s), ". Write another with: -o FILE"));
    case SessionState::kElsewhere:
      if (request.once) return absl::OkStatus();
      return absl::FailedPreconditionError(
          absl::StrCat(s.path,
                       ": its process belongs to another PID namespace (a container), so it is not "
                       "known here whether it is alive. Collect it there, or collect what it holds "
                       "now with: --once"));
    case SessionState::kDormant:
      return absl::FailedPreconditionError(
          absl::StrCat(s.path, ": its process is dormant and not being recorded. ",
                       "To record it: gpumemtrace attach ", s.pid));
    case SessionState::kDamaged:
      return absl::DataLossError(absl::StrCat(s.path, ": ", s.damage));
    case SessionState::kUnattended:
    case SessionState::kOrphaned:
    case SessionState::kOtherBoot:
    case SessionState::kOtherRelease:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CollectorFor(const SessionSummary& s) {
  if (s.state != SessionState::kOtherRelease) return CollectorProgram();
  const fs::path beside = fs::path(s.shim).parent_path();
  const std::vector<std::string> places = {s.collector, (beside / "gpumemtrace-collector").string(),
                                           (beside / "../bin/gpumemtrace-collector").string(),
                                           (beside / "../../bin/gpumemtrace-collector").string(),
                                           (beside / "../libexec/gpumemtrace-collector").string()};
  for (const std::string& place : places) {
    if (IsProgram(place)) return place;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      s.path, " was made by gpumemtrace ", s.version.empty() ? "of another release" : s.version,
      " (session format ", s.abi_major, ", this program reads ", session::kAbiMajor,
      "), whose collector is no longer at ", s.collector.empty() ? s.shim : s.collector,
      ". Collect it with that release: gpumemtrace collect ", s.path));
}

absl::StatusOr<std::string> FreeOutput(const SessionSummary& s) {
  constexpr int kMaxAttempts = 10000;
  if (s.output.empty())
    return UsageError("collect: the session names no recording. Name one with: -o FILE");
  const fs::path wanted = s.output;
  std::error_code error;
  if (!fs::is_directory(wanted.parent_path(), error)) {
    return absl::NotFoundError(absl::StrCat(wanted.parent_path().string(),
                                            " does not exist here. Write elsewhere with: -o FILE"));
  }
  for (int n = 0; n < kMaxAttempts; ++n) {
    const fs::path path = n == 0
                              ? wanted
                              : wanted.parent_path() / absl::StrCat(wanted.stem().string(), ".", n,
                                                                    wanted.extension().string());
    if (!fs::exists(fs::symlink_status(path, error))) return path.string();
  }
  return absl::AlreadyExistsError(
      absl::StrCat(s.output, ": no free file name next to it. Use -o FILE"));
}

}  // namespace gmt::cli
