#include "cli/record/attach_recording.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/record/inject_library.h"
#include "collector/inject/preconditions.h"
#include "collector/inject/running_program.h"
#include "collector/inject/target_info.h"
#include "collector/sessions/socket_path.h"

namespace gmt::cli {
namespace {

using inject::TargetInfo;

absl::Status AlreadyRecorded(const TargetInfo& target, const AttachedSession& session) {
  const std::string recording = session.Recording();
  const std::string where = recording.empty() ? "" : absl::StrCat(" to ", recording);
  if (!session.has_attach_gate()) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", target.pid, " was started under gpumemtrace and is being recorded",
                     where, ". To see what it holds now: gpumemtrace snapshot ", target.pid,
                     ", gpumemtrace top ", target.pid));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("process ", target.pid, " is already attached and being recorded", where,
                   ". To stop: gpumemtrace detach ", target.pid));
}

absl::StatusOr<std::unique_ptr<AttachedSession>> FindOrInjectSession(const AttachOptions& options,
                                                                     const TargetInfo& target) {
  auto session = AttachedSession::OfProcess(target);
  if (session.ok()) {
    if (!(*session)->has_attach_gate() || (*session)->is_attached() || (*session)->is_in_use())
      return AlreadyRecorded(target, **session);
    if (!(*session)->is_injected()) return session;
    if ((*session)->control().attach_now.load() != 0) return (*session)->NotDetachedYet();
  }
  if (!session.ok() && !absl::IsNotFound(session.status())) return session;
  if (!session.ok() && options.method == "dormant") {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", target.pid,
                     " was not started with GPUMEMTRACE=dormant, has made no GPU call yet, or "
                     "could not create a session, which it reported on stderr. To inject the "
                     "library: gpumemtrace attach ",
                     target.pid));
  }
  std::string path;
  const absl::StatusOr<std::string> note =
      InjectLibrary(target, /*insist=*/options.method == "inject", &path);
  if (!note.ok()) return note.status();
  if (!note->empty() && !options.quiet) PrintNote(*note);
  return AttachedSession::Open(path, target);
}

// Between the injection and our request, the process may have detached from another attach, after
// which its calls are no longer intercepted. Injects again in that case. Once the request is set,
// calls stay intercepted.
absl::Status EnsureCallsIntercepted(const AttachOptions& options, const TargetInfo& target,
                                    const AttachedSession& session) {
  constexpr int kMaxRounds = 3;
  for (int round = 0; round < kMaxRounds && session.is_bypassed(); ++round) {
    std::string path;
    const auto note = InjectLibrary(target, /*insist=*/options.method == "inject", &path);
    if (!note.ok()) return note.status();
  }
  return session.is_bypassed() ? session.NotDetachedYet() : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CollectorProcess>> StartCollector(const AttachOptions& options,
                                                                 const TargetInfo& target,
                                                                 const AttachedSession& session,
                                                                 const ClaimedOutput& output) {
  if (absl::Status status = EnsureCallsIntercepted(options, target, session); !status.ok())
    return status;
  return CollectorProcess::Start(session, output, target.pid);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttachRecording>> AttachRecording::Begin(
    const AttachOptions& options, const std::string& text, pid_t pid) {
  // Before the injection, so that a program that executes another one right after it is noticed.
  auto program = std::make_unique<inject::RunningProgram>(pid);
  const TargetInfo target = inject::Inspect(pid);
  if (!target.exists)
    return absl::NotFoundError(inject::FirstRefusal(target, inject::CheckAttachable(target, "")));
  auto output = ClaimedOutput::Make(OutputFor(options.recording.output, pid));
  if (!output.ok()) return output.status();
  auto recording = Ask(options, text, target, **output);
  if (recording.ok()) {
    (*output)->HandOver();
    (*recording)->output_ = *std::move(output);
    (*recording)->program_ = std::move(program);
  } else {
    (*output)->RemoveIfEmpty();
  }
  return recording;
}

absl::StatusOr<std::unique_ptr<AttachRecording>> AttachRecording::Ask(const AttachOptions& options,
                                                                      const std::string& text,
                                                                      const TargetInfo& target,
                                                                      const ClaimedOutput& output) {
  auto session = FindOrInjectSession(options, target);
  if (!session.ok()) return session.status();
  absl::StatusOr<uint32_t> number = (*session)->Ask(text);
  if (!number.ok()) return number.status();
  auto collector = StartCollector(options, target, **session, output);
  if (!collector.ok()) {
    (*session)->Withdraw(*number);
    if ((*session)->is_injected()) DetachLibrary(target);
    return collector.status();
  }
  return std::unique_ptr<AttachRecording>(
      new AttachRecording(target.pid, *std::move(session), *std::move(collector), *number));
}

AttachRecording::AttachRecording(pid_t pid, std::unique_ptr<AttachedSession> session,
                                 std::unique_ptr<CollectorProcess> collector, uint32_t number)
    : pid_(pid), session_(std::move(session)), collector_(std::move(collector)), number_(number) {}

std::string AttachRecording::session() const {
  return control::NameByCollector(collector_->pid(), session_->fd());
}

bool AttachRecording::HasBegun() const {
  const session::Control& c = session_->control();
  return c.attach_now.load() == number_ &&
         c.collector_pid.load() == static_cast<uint32_t>(collector_->pid());
}

absl::Status AttachRecording::Problem() {
  const session::Control& c = session_->control();
  if (c.attach_refused.load() == number_) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", pid_, " cannot be recorded: no memory for its session: ",
                     std::strerror(static_cast<int>(c.attach_errno.load()))));
  }
  if (!collector_->HasEnded()) return ProblemOfProgram();
  const std::string complaint = collector_->Complaint();
  if (!complaint.empty()) return absl::InternalError(complaint);
  if (collector_->exit_code() != 0) {
    return absl::InternalError(absl::StrCat(
        "process ", pid_, " is not recorded: its collector exited with code ",
        collector_->exit_code(), " and no message. To find out why: gpumemtrace doctor"));
  }
  return absl::NotFoundError(
      absl::StrCat("process ", pid_, " ended before it called the GPU again"));
}

absl::Status AttachRecording::ProblemOfProgram() const {
  // A program that has recorded something is waited for: its collector will read that.
  if (session_->control().attach_now.load() == number_ || !program_->IsGone())
    return absl::OkStatus();
  const TargetInfo now = inject::Inspect(pid_);
  // A process that is ending gives up its program before it becomes a zombie.
  const bool is_ending = now.state == 'Z' || now.state == 'X' || now.program.empty();
  if (!now.exists || is_ending) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "process ", pid_, " executed another program before it called the GPU again. To record that ",
      "program: gpumemtrace attach ", pid_));
}

void AttachRecording::Withdraw() { session_->Withdraw(number_); }

bool AttachRecording::End() {
  constexpr auto kPatience = std::chrono::seconds(30);
  Withdraw();
  return collector_->WaitForEnd(kPatience) && collector_->exit_code() == 0;
}

void AttachRecording::Cancel() {
  End();
  if (collector_->HasEnded()) output_->RemoveIfEmpty();
  if (session_->is_injected() && !program_->IsGone()) DetachLibrary(inject::Inspect(pid_));
}

}  // namespace gmt::cli
