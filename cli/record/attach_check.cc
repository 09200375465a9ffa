#include "cli/record/attach_check.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "answers/json.h"
#include "cli/command.h"
#include "cli/install.h"
#include "cli/record/attached_session.h"
#include "collector/inject/preconditions.h"
#include "collector/inject/target_info.h"
#include "format/printable.h"

namespace gmt::cli {
namespace {

using inject::Precondition;
using inject::TargetInfo;
using inject::Verdict;

const char* InWords(Verdict verdict) {
  return verdict == Verdict::kPass ? "pass" : verdict == Verdict::kFail ? "FAIL" : "note";
}

// A process that already has the library needs none of the preconditions of an injection.
std::vector<Precondition> Checks(const TargetInfo& target, const std::string& library) {
  const auto session = AttachedSession::OfProcess(target);
  if (!session.ok() || !target.exists) return inject::CheckAttachable(target, library);
  if (!(*session)->has_attach_gate())
    return {{"session", Verdict::kFail,
             absl::StrCat("it was started under gpumemtrace and is being recorded to ",
                          (*session)->Recording()),
             absl::StrCat("To see what it holds now: gpumemtrace snapshot ", target.pid)}};
  if ((*session)->is_attached() || (*session)->is_in_use())
    return {{"session", Verdict::kFail,
             absl::StrCat("it is already attached and being recorded to ", (*session)->Recording()),
             absl::StrCat("To stop: gpumemtrace detach ", target.pid)}};
  return {{"session", Verdict::kPass,
           absl::StrCat("its library is loaded and waits for an attach: ", (*session)->path()),
           ""}};
}

int PrintChecks(const TargetInfo& target, const std::vector<Precondition>& checks, bool json) {
  const std::string refusal = inject::FirstRefusal(target, checks);
  if (json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Precondition& c : checks)
      rows.push_back({{"name", c.name},
                      {"verdict", c.verdict == Verdict::kFail ? "fail" : InWords(c.verdict)},
                      {"found", c.found},
                      {"fix", c.fix}});
    nlohmann::ordered_json out = answers::NewJson("attach", "");
    out["pid"] = target.pid;
    out["attachable"] = refusal.empty();
    out["checks"] = std::move(rows);
    PrintJson(out);
  } else {
    fmt::print("Process {} {} be attached to.\n\n", target.pid, refusal.empty() ? "can" : "cannot");
    for (const Precondition& c : checks) {
      fmt::print("  {}  {:<10} {}\n", InWords(c.verdict), c.name, format::Printable(c.found));
      if (!c.fix.empty()) fmt::print("  {:<16} {}\n", "", format::Printable(c.fix));
    }
  }
  return refusal.empty() ? kDone : kFailed;
}

}  // namespace

absl::StatusOr<int> CheckAttach(pid_t pid, bool json) {
  const absl::StatusOr<std::string> library = PreloadLibrary();
  if (!library.ok()) return library.status();
  const TargetInfo target = inject::Inspect(pid);
  return PrintChecks(target, Checks(target, *library), json);
}

}  // namespace gmt::cli
