#include "cli/live/control_session.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/record/collect_session.h"

namespace gmt::cli {
namespace {

using collector::SessionState;
using collector::SessionSummary;

absl::Status WhyNoSession(const std::string& name, absl::Status status) {
  uint64_t pid;
  struct stat st;
  if (!absl::IsNotFound(status) || !absl::SimpleAtoi(name, &pid)) return status;
  if (stat(absl::StrCat("/proc/", pid).c_str(), &st) != 0)
    return absl::NotFoundError(
        absl::StrCat("there is no process ", pid,
                     " and no session of it. To see all sessions: gpumemtrace list"));
  if (st.st_uid == geteuid()) return status;
  return absl::PermissionDeniedError(absl::StrCat("process ", pid, " belongs to another user (uid ",
                                                  st.st_uid,
                                                  "); only that user can see its sessions"));
}

absl::Status WhyNoCollectorAnswers(const SessionSummary& s) {
  switch (s.state) {
    case SessionState::kRecording:
      return absl::FailedPreconditionError(absl::StrCat(
          s.path, ": its collector (process ", s.collector_pid,
          ") has no control socket: it is from an earlier release, or its directory does not "
          "support sockets. To find out why, start it with GPUMEMTRACE_COLLECTOR_LOG=FILE"));
    case SessionState::kUnattended:
      return absl::FailedPreconditionError(absl::StrCat(
          "process ", s.pid, " is alive, but no collector is recording it. Start one with: ",
          "gpumemtrace collect ", s.pid));
    case SessionState::kDormant:
      return absl::FailedPreconditionError(absl::StrCat(
          "process ", s.pid,
          " is dormant and not being recorded. To record it: ", "gpumemtrace attach ", s.pid));
    case SessionState::kOrphaned:
    case SessionState::kOtherBoot:
      return absl::FailedPreconditionError(absl::StrCat(
          "process ", s.pid, " has ended. Write its recording with: gpumemtrace collect ", s.path));
    case SessionState::kCollected:
      return absl::FailedPreconditionError(
          absl::StrCat("process ", s.pid, " has ended; its recording is complete: ", s.output));
    case SessionState::kElsewhere:
      return absl::FailedPreconditionError(
          absl::StrCat(s.path,
                       ": its process belongs to another PID namespace (a container). Run this "
                       "there, or name the session by its path"));
    case SessionState::kOtherRelease:
    case SessionState::kDamaged:
      return absl::FailedPreconditionError(absl::StrCat(s.path, ": ", s.damage));
  }
  return absl::FailedPreconditionError(s.path);
}

absl::StatusOr<ControlledSession> ConnectOnce(const std::string& name, bool* may_start) {
  absl::StatusOr<SessionSummary> session = FindSession(name);
  if (!session.ok()) return WhyNoSession(name, session.status());
  auto client = control::Client::Connect(session->path);
  if (absl::IsNotFound(client.status())) {
    *may_start =
        session->state == SessionState::kRecording || session->state == SessionState::kUnattended;
    return WhyNoCollectorAnswers(*session);
  }
  if (!client.ok()) return client.status();
  return ControlledSession{*std::move(session), *std::move(client)};
}

}  // namespace

absl::StatusOr<ControlledSession> ConnectToCollector(const std::string& name) {
  return WhileItStarts([&](bool* may_start) { return ConnectOnce(name, may_start); });
}

}  // namespace gmt::cli
