// gpumemtrace list: which processes are being recorded, and which sessions can be collected.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/text.h"
#include "answers/json.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "collector/sessions/session_search.h"
#include "format/printable.h"

namespace gmt::cli {
namespace {

using collector::SessionState;
using collector::SessionSummary;

bool CanBeCollected(SessionState state) {
  return state == SessionState::kUnattended || state == SessionState::kOrphaned ||
         state == SessionState::kOtherBoot || state == SessionState::kOtherRelease;
}

// Used in the table, and after a number in the first line.
const char* InWords(SessionState state) {
  switch (state) {
    case SessionState::kRecording:
      return "recording";
    case SessionState::kUnattended:
      return "live without a collector";
    case SessionState::kDormant:
      return "dormant";
    case SessionState::kOrphaned:
      return "orphaned";
    case SessionState::kCollected:
      return "collected";
    case SessionState::kOtherBoot:
      return "orphaned by a reboot";
    case SessionState::kElsewhere:
      return "in another PID namespace";
    case SessionState::kOtherRelease:
      return "from another release";
    case SessionState::kDamaged:
      return "damaged";
  }
  return "damaged";
}

std::string FirstLine(const std::vector<SessionSummary>& sessions) {
  if (sessions.empty())
    return "No sessions: nothing is being recorded, and there is nothing to collect.";
  std::vector<std::pair<SessionState, uint64_t>> counts;
  for (const SessionSummary& session : sessions) {
    const auto it = std::find_if(counts.begin(), counts.end(),
                                 [&](const auto& c) { return c.first == session.state; });
    if (it == counts.end()) {
      counts.emplace_back(session.state, 1);
    } else {
      ++it->second;
    }
  }
  std::sort(counts.begin(), counts.end());
  const std::string states = absl::StrJoin(counts, ", ", [](std::string* out, const auto& count) {
    absl::StrAppend(out, Count(count.second), " ", InWords(count.first));
  });
  const auto waiting = std::find_if(sessions.begin(), sessions.end(),
                                    [](const auto& s) { return CanBeCollected(s.state); });
  const std::string answer = absl::StrCat(Plural(sessions.size(), "session"), ": ", states);
  if (waiting == sessions.end()) return absl::StrCat(answer, ".");
  return absl::StrCat(answer, ". Collect with: gpumemtrace collect ", waiting->path);
}

std::string CommandLine(const SessionSummary& session) {
  constexpr size_t kMax = 40;
  const std::string text = format::Printable(absl::StrJoin(session.argv, " "));
  return text.size() <= kMax ? text : absl::StrCat(text.substr(0, kMax - 3), "...");
}

void PrintText(const std::vector<SessionSummary>& sessions, const Terminal& terminal) {
  fmt::print("{}\n", terminal.Bold(FirstLine(sessions)));
  if (sessions.empty()) return;
  const char* row = "{:>8}  {:<24}  {:>10}  {:>10}  {:>9}  {}\n";
  fmt::print("\n");
  fmt::print(fmt::runtime(row), "PID", "STATE", "AGE", "IDLE", "SIZE", "COMMAND");
  for (const SessionSummary& s : sessions) {
    fmt::print(fmt::runtime(row), s.pid, InWords(s.state), Duration(static_cast<int64_t>(s.age_ns)),
               Duration(static_cast<int64_t>(s.idle_ns)), Bytes(s.bytes), CommandLine(s));
    fmt::print("{:10}session    {}\n", "", format::Printable(s.path));
    if (!s.output.empty()) fmt::print("{:10}recording  {}\n", "", format::Printable(s.output));
    if (s.collector_pid != 0) fmt::print("{:10}collector  process {}\n", "", s.collector_pid);
    if (!s.damage.empty()) fmt::print("{:10}problem    {}\n", "", format::Printable(s.damage));
  }
}

void PrintAsJson(const std::vector<SessionSummary>& sessions) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const SessionSummary& s : sessions) {
    nlohmann::ordered_json row = {{"path", s.path},
                                  {"state", StateName(s.state)},
                                  {"pid", s.pid},
                                  {"argv", s.argv},
                                  {"started_unix_ns", s.started_unix_ns},
                                  {"age_ns", s.age_ns},
                                  {"idle_ns", s.idle_ns},
                                  {"bytes", s.bytes},
                                  {"output", s.output},
                                  {"version", s.version},
                                  {"run_id", s.run_id}};
    row["collector_pid"] = s.collector_pid == 0 ? nullptr : nlohmann::ordered_json(s.collector_pid);
    row["problem"] = s.damage.empty() ? nullptr : nlohmann::ordered_json(s.damage);
    rows.push_back(std::move(row));
  }
  nlohmann::ordered_json out = answers::NewJson("list", "");
  out["sessions"] = std::move(rows);
  PrintJson(out);
}

int List(bool json, const Terminal& terminal) {
  const std::vector<SessionSummary> sessions = collector::FindSessions();
  if (json) {
    PrintAsJson(sessions);
  } else {
    PrintText(sessions, terminal);
  }
  return kDone;
}

}  // namespace

void AddList(Program& program) {
  auto json = std::make_shared<bool>(false);
  Command command = program.AddVerb(
      "list", "List recorded processes and sessions that can be collected",
      [json](const Terminal& terminal) { return absl::StatusOr<int>(List(*json, terminal)); });
  command.Flag("--json", json.get(), "print JSON");
}

}  // namespace gmt::cli
