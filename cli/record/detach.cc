// gpumemtrace detach: ends the recording of an attached process. The process keeps running.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/record/attached_session.h"
#include "cli/record/inject_library.h"
#include "cli/verbs.h"
#include "collector/inject/preconditions.h"
#include "collector/inject/target_info.h"
#include "format/byte_source.h"
#include "format/framing.h"
#include "format/printable.h"

namespace gmt::cli {
namespace {

absl::Status NotAttached(pid_t pid) {
  return absl::FailedPreconditionError(absl::StrCat(
      "process ", pid, " is not attached. To see what is being recorded: gpumemtrace list"));
}

// Waits until the collector has completed the recording and released the session.
bool AwaitEnd(const AttachedSession& session) {
  constexpr auto kPatience = std::chrono::seconds(30);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (session.is_in_use()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    usleep(5000);
  }
  return true;
}

// The attaching program creates the file, which stays empty until something can be written to it.
bool HoldsNothing(const std::string& recording) {
  std::error_code unknown;
  return std::filesystem::file_size(recording, unknown) == 0 && !unknown;
}

// Checks that the file has its footer. A collector that was killed has not written one.
bool IsComplete(const std::string& recording) {
  auto source = format::OpenFile(recording);
  if (!source.ok() || (*source)->size() < format::kFooterBytes) return false;
  std::string end;
  const uint64_t at = (*source)->size() - format::kFooterBytes;
  return (*source)->Read(at, format::kFooterBytes, &end).ok() &&
         format::ParseFooter(end).has_value();
}

absl::StatusOr<int> Detach(const std::string& name) {
  pid_t pid;
  if (!absl::SimpleAtoi(name, &pid) || pid <= 0)
    return UsageError(absl::StrCat("detach: '", name, "' is not a process ID"));
  const inject::TargetInfo target = inject::Inspect(pid);
  if (!target.exists)
    return absl::NotFoundError(absl::StrCat("process ", pid, ": there is no such process"));
  auto session = AttachedSession::OfProcess(target);
  if (absl::IsNotFound(session.status())) return NotAttached(pid);
  if (!session.ok()) return session.status();
  if (!(*session)->has_attach_gate()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "process ", pid, " was started under gpumemtrace and is recorded until it ends, to ",
        (*session)->Recording()));
  }
  const uint32_t number = (*session)->control().attach_wanted.load();
  if (number == 0) return NotAttached(pid);
  const std::string recording = (*session)->Recording();
  const bool was_in_use = (*session)->is_in_use();
  const bool never_began = (*session)->control().attach_last.load() != number;
  const bool library_waits = never_began && (*session)->is_injected();
  if (!was_in_use) {
    (*session)->WithdrawWithoutCollector(number);
    if (library_waits) DetachLibrary(target);
    PrintNote(fmt::format("process {} is detached; its collector had already ended", pid));
    return kDone;
  }
  (*session)->Withdraw(number);
  if (!AwaitEnd(**session)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "process ", pid, " is detached, but its collector is still writing ", recording));
  }
  if (library_waits) DetachLibrary(target);
  if (never_began && HoldsNothing(recording)) {
    unlink(recording.c_str());
    PrintNote(fmt::format("process {} is detached; nothing was recorded yet", pid));
    return kDone;
  }
  if (!IsComplete(recording)) {
    return absl::DataLossError(absl::StrCat(
        "process ", pid, " is detached, but ", recording,
        " is not complete: its collector has died, or could not write it. To see whether the rest "
        "can be collected: gpumemtrace list"));
  }
  fmt::print("{}\n", format::Printable(recording));
  return kDone;
}

}  // namespace

void AddDetach(Program& program) {
  auto pid = std::make_shared<std::string>();
  Command command = program.AddVerb("detach", "Stop recording an attached process",
                                    [pid](const Terminal&) { return Detach(*pid); });
  command.Argument("PID", pid.get(), "process ID");
}

}  // namespace gmt::cli
