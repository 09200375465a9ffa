#include "cli/attach_recording.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/install.h"
#include "collector/inject/inject.h"
#include "collector/inject/library_place.h"
#include "collector/inject/preconditions.h"
#include "collector/inject/target_info.h"

namespace gmt::cli {
namespace {

using inject::Precondition;
using inject::TargetInfo;

absl::Status RefuseIfFiltersAreUnknown(const TargetInfo& target,
                                       const std::vector<Precondition>& checks, bool insisted) {
  std::vector<Precondition> counting;
  for (const Precondition& check : checks) {
    const bool is_unread =
        check.name == "seccomp" && check.fix.find("--method inject") != std::string::npos;
    if (!(insisted && is_unread)) counting.push_back(check);
  }
  const std::string refusal = inject::FirstRefusal(target, counting);
  return refusal.empty() ? absl::OkStatus() : absl::FailedPreconditionError(refusal);
}

// Brings the library into the process, which then has a session with a door. Returns what the library has
// to say.
absl::StatusOr<std::string> BringIn(const AttachOptions& options, const TargetInfo& target,
                                    std::string* session) {
  absl::StatusOr<std::string> library = PreloadLibrary();
  if (!library.ok()) return library.status();
  const std::vector<Precondition> checks = inject::CheckAttachable(target, *library);
  if (absl::Status status = RefuseIfFiltersAreUnknown(target, checks, options.method == "inject");
      !status.ok())
    return status;
  auto place = inject::LibraryPlace::Find(target, *library);
  if (!place.ok()) return place.status();
  inject::Request request;
  request.pid = target.pid;
  request.library = (*place)->path();
  request.function = "gpumemtrace_attach";
  const absl::StatusOr<inject::Reply> reply = inject::Inject(request);
  if (!reply.ok()) return reply.status();
  const size_t line = std::min(reply->text.find('\n'), reply->text.size());
  const std::string first = reply->text.substr(0, line);
  const std::string rest = line < reply->text.size() ? reply->text.substr(line + 1) : "";
  if (reply->result < 0)
    return absl::FailedPreconditionError(absl::StrCat("process ", target.pid, ": ", reply->text));
  *session =
      target.own_mount_namespace ? first : absl::StrCat("/proc/", target.pid, "/root", first);
  return rest;
}

absl::Status AlreadyRecorded(const TargetInfo& target, const AttachedSession& session) {
  const std::string recording = session.Recording();
  const std::string where = recording.empty() ? "" : absl::StrCat(" to ", recording);
  if (!session.has_door()) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", target.pid, " is being recorded from its beginning", where,
                     ". What it holds now: gpumemtrace snapshot ", target.pid, ", gpumemtrace top ",
                     target.pid));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("process ", target.pid, " is attached to already and recorded", where,
                   ". End that with: gpumemtrace detach ", target.pid));
}

absl::StatusOr<std::unique_ptr<AttachedSession>> FindDoor(const AttachOptions& options,
                                                          const TargetInfo& target) {
  auto session = AttachedSession::OfProcess(target);
  if (session.ok()) {
    if (!(*session)->has_door() || (*session)->is_attached() || (*session)->is_taken())
      return AlreadyRecorded(target, **session);
    if (!(*session)->is_brought()) return session;
  }
  if (!session.ok() && !absl::IsNotFound(session.status())) return session;
  if (!session.ok() && options.method == "dormant") {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", target.pid,
                     " was not started with GPUMEMTRACE=dormant, or has not called the GPU "
                     "yet. Bring the library into it with: gpumemtrace attach ",
                     target.pid));
  }
  std::string path;
  const absl::StatusOr<std::string> note = BringIn(options, target, &path);
  if (!note.ok()) return note.status();
  if (!note->empty() && !options.quiet) PrintNote(*note);
  return AttachedSession::Open(path, target);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttachRecording>> AttachRecording::Begin(
    const AttachOptions& options, const std::string& text, pid_t pid) {
  const TargetInfo target = inject::Inspect(pid);
  if (!target.exists)
    return absl::NotFoundError(inject::FirstRefusal(target, inject::CheckAttachable(target, "")));
  absl::StatusOr<std::string> output = OutputFor(options.output, pid);
  if (!output.ok()) return output.status();
  auto session = FindDoor(options, target);
  if (!session.ok()) return session.status();
  absl::StatusOr<uint32_t> number = (*session)->Ask(text);
  if (!number.ok()) return number.status();
  auto collector = CollectorProcess::Start((*session)->path(), *output, pid);
  if (!collector.ok()) {
    (*session)->Withdraw();
    return collector.status();
  }
  return std::unique_ptr<AttachRecording>(
      new AttachRecording(pid, *output, *std::move(session), *std::move(collector), *number));
}

AttachRecording::AttachRecording(pid_t pid, std::string output,
                                 std::unique_ptr<AttachedSession> session,
                                 std::unique_ptr<CollectorProcess> collector, uint32_t number)
    : pid_(pid),
      output_(std::move(output)),
      session_(std::move(session)),
      collector_(std::move(collector)),
      number_(number) {}

bool AttachRecording::HasBegun() const {
  return session_->control().attach_now.load() == number_ && access(output_.c_str(), F_OK) == 0;
}

absl::Status AttachRecording::Problem() {
  const session::Control& c = session_->control();
  if (c.attach_refused.load() == number_) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", pid_, " cannot be recorded: no memory for its session: ",
                     std::strerror(static_cast<int>(c.attach_errno.load()))));
  }
  if (!collector_->HasEnded()) return absl::OkStatus();
  const std::string complaint = collector_->Complaint();
  if (!complaint.empty()) return absl::InternalError(complaint);
  return absl::NotFoundError(
      absl::StrCat("process ", pid_, " ended before it called the GPU again"));
}

bool AttachRecording::End() {
  constexpr auto kPatience = std::chrono::seconds(30);
  session_->Withdraw();
  return collector_->WaitForEnd(kPatience) && collector_->exit_code() == 0;
}

void AttachRecording::Cancel() {
  const bool begun = session_->control().attach_last.load() == number_;
  End();
  if (!begun) unlink(output_.c_str());
}

}  // namespace gmt::cli
