// gpumemtrace detach: ends the recording of a process that was attached to. The process goes on.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/attached_session.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "collector/inject/preconditions.h"
#include "collector/inject/target_info.h"

namespace gmt::cli {
namespace {

absl::Status NotAttached(pid_t pid) {
  return absl::FailedPreconditionError(absl::StrCat(
      "process ", pid, " is not attached to. What is recorded shows: gpumemtrace list"));
}

// Its collector completes the recording and lets go of the session.
bool AwaitEnd(const AttachedSession& session) {
  constexpr auto kPatience = std::chrono::seconds(30);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (session.is_taken()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    usleep(5000);
  }
  return true;
}

absl::StatusOr<int> Detach(const std::string& name) {
  pid_t pid;
  if (!absl::SimpleAtoi(name, &pid) || pid <= 0)
    return UsageError(absl::StrCat("detach: '", name, "' is no process's number"));
  const inject::TargetInfo target = inject::Inspect(pid);
  if (!target.exists)
    return absl::NotFoundError(absl::StrCat("process ", pid, ": there is no such process"));
  auto session = AttachedSession::OfProcess(target);
  if (absl::IsNotFound(session.status())) return NotAttached(pid);
  if (!session.ok()) return session.status();
  if (!(*session)->has_door()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "process ", pid, " was started to be recorded until it ends; its recording is ",
        (*session)->Recording()));
  }
  if (!(*session)->is_attached()) return NotAttached(pid);
  const std::string recording = (*session)->Recording();
  const bool was_taken = (*session)->is_taken();
  (*session)->Withdraw();
  if (!was_taken) {
    (*session)->Release();
    PrintNote(fmt::format("process {} is detached; its collector was gone already", pid));
    return kDone;
  }
  if (!AwaitEnd(**session)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "process ", pid, " is detached, but its collector is still writing ", recording));
  }
  fmt::print("{}\n", recording);
  return kDone;
}

}  // namespace

void AddDetach(Program& program) {
  auto pid = std::make_shared<std::string>();
  Command command = program.AddVerb("detach", "End the recording of a process that was attached to",
                                    [pid](const Terminal&) { return Detach(*pid); });
  command.Argument("PID", pid.get(), "process");
}

}  // namespace gmt::cli
