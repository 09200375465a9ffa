#include "cli/record/inject_library.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/install.h"
#include "collector/inject/inject.h"
#include "collector/inject/library_place.h"
#include "collector/inject/preconditions.h"

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

// Makes the process call one of the library's functions. The process loads the library if
// necessary.
absl::StatusOr<inject::Reply> Call(const TargetInfo& target, bool insist, const char* function,
                                   std::chrono::milliseconds search) {
  absl::StatusOr<std::string> library = PreloadLibrary();
  if (!library.ok()) return library.status();
  const std::vector<Precondition> checks = inject::CheckAttachable(target, *library);
  if (absl::Status status = RefuseIfFiltersAreUnknown(target, checks, insist); !status.ok())
    return status;
  auto place = inject::LibraryPlace::Find(target, *library);
  if (!place.ok()) return place.status();
  inject::Request request;
  request.pid = target.pid;
  request.library = (*place)->path();
  request.function = function;
  request.search = search;
  return inject::Inject(request);
}

}  // namespace

absl::StatusOr<std::string> InjectLibrary(const TargetInfo& target, bool insist,
                                          std::string* session) {
  const absl::StatusOr<inject::Reply> reply =
      Call(target, insist, "gpumemtrace_attach", inject::Request().search);
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

void DetachLibrary(const TargetInfo& target) {
  if (target.exists)
    Call(target, /*insist=*/true, "gpumemtrace_undo_attach", std::chrono::seconds(1)).IgnoreError();
}

}  // namespace gmt::cli
