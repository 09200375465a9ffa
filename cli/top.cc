// gpumemtrace top: shows what recorded processes hold, while they run.

#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "answers/json.h"
#include "cli/command.h"
#include "cli/top/curses_terminal.h"
#include "cli/top/top_choice.h"
#include "cli/top/top_feed.h"
#include "cli/top/top_json.h"
#include "cli/top/top_model.h"
#include "cli/top/top_screen.h"
#include "cli/verbs.h"
#include "collector/control/client.h"
#include "collector/sessions/session_search.h"

namespace gmt::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kKeyWaitMs = 100;
constexpr auto kLookForProcesses = std::chrono::seconds(2);
constexpr auto kStartPatience = std::chrono::seconds(1);
constexpr auto kFirstAnswer = std::chrono::seconds(10);
constexpr auto kPatience = std::chrono::seconds(5);

struct TopArguments {
  std::string pid;
  double interval = 1;
  bool once = false, json = false;
};

// The collectors that are subscribed to, and their last answers.
class Watched {
 public:
  Watched(uint64_t pid, uint32_t interval_ms) : pid_(pid), interval_ms_(interval_ms) {}

  // Adds processes whose recording has begun meanwhile. Returns true if another recording is about
  // to begin: its process has a session but no collector yet.
  bool LookForProcesses(control::TopOrder order) {
    bool is_about_to = false;
    for (const collector::SessionSummary& session : collector::FindSessions()) {
      if ((pid_ != 0 && session.pid != pid_) || feeds_.contains(session.path)) continue;
      is_about_to |= session.state == collector::SessionState::kUnattended;
      if (session.state != collector::SessionState::kRecording) continue;
      model_.Add(session.pid, absl::StrJoin(session.argv, " "));
      feeds_[session.path] = {session.pid,
                              std::make_unique<TopFeed>(session.path, interval_ms_, order)};
    }
    return is_about_to;
  }
  // Returns true if anything is new.
  bool Take() {
    bool is_new = false;
    for (auto& [path, feed] : feeds_) {
      if (const auto top = feed.from->Take()) {
        model_.Take(feed.pid, *top);
        is_new = true;
      }
      if (const std::string trouble = feed.from->trouble(); !trouble.empty())
        model_.Lose(feed.pid, trouble);
    }
    return is_new;
  }
  void SetOrder(control::TopOrder order) {
    for (auto& [path, feed] : feeds_) feed.from->SetOrder(order);
  }
  // Returns whether each collector has answered or will not.
  bool AllHaveAnswered() const {
    for (const auto& [path, feed] : feeds_) {
      const TopProcess* process = model_.Find(feed.pid);
      if (!feed.from->has_ended() && !process->last.has_status()) return false;
    }
    return true;
  }
  std::string SessionOf(uint64_t pid) const {
    for (const auto& [path, feed] : feeds_) {
      if (feed.pid == pid) return path;
    }
    return "";
  }
  const TopModel& model() const { return model_; }

 private:
  struct Feed {
    uint64_t pid = 0;
    std::unique_ptr<TopFeed> from;
  };

  const uint64_t pid_;  // 0: all
  const uint32_t interval_ms_;
  TopModel model_;
  std::map<std::string, Feed> feeds_;  // by session
};

absl::Status NothingToShow(const TopArguments& options) {
  return absl::NotFoundError(
      options.pid.empty()
          ? "top: no process is being recorded. To see all sessions: gpumemtrace list. To record "
            "one: gpumemtrace run -- COMMAND"
          : absl::StrCat("top: process ", options.pid,
                         " is not being recorded. Attach to it with: "
                         "gpumemtrace attach ",
                         options.pid));
}

// Sends a request to the collector of the chosen process. Returns the result as text for the last
// line.
std::string Ask(const Watched& watched, const TopChoice& choice, TopAction action) {
  if (choice.pid == 0) return "no process is being recorded";
  auto client = control::Client::Connect(watched.SessionOf(choice.pid), kPatience);
  if (!client.ok()) return std::string(client.status().message());
  control::Request request;
  if (action == TopAction::kSnapshot) {
    request.mutable_snapshot();
  } else {
    request.mutable_mark()->set_name(choice.typed);
  }
  const auto reply = (*client)->Ask(request, kPatience);
  if (!reply.ok()) return std::string(reply.status().message());
  return action == TopAction::kSnapshot
             ? absl::StrCat("snapshot/", reply->snapshot().name(), " is in ",
                            reply->snapshot().recording())
             : absl::StrCat("mark \"", choice.typed, "\" is in the recording of ", choice.pid);
}

absl::StatusOr<int> Print(const TopArguments& options, Watched& watched, const Terminal& terminal) {
  const auto deadline = Clock::now() + kFirstAnswer;
  while (!watched.AllHaveAnswered() && Clock::now() < deadline) {
    watched.Take();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (options.json) {
    nlohmann::ordered_json out = answers::NewJson("top", "");
    out["processes"] = TopJson(watched.model());
    PrintJson(out);
    return kDone;
  }
  for (const TopLine& line : DrawTop(watched.model(), {}, {terminal.width, 0, true}))
    printf("%s\n", line.text.c_str());
  return kDone;
}

// Returns the process after `pid`, the first one after the last; 0 if there is none.
uint64_t NextPid(const TopModel& model, uint64_t pid) {
  for (const TopProcess& process : model.processes()) {
    if (process.pid > pid) return process.pid;
  }
  return model.processes().empty() ? 0 : model.processes().front().pid;
}

absl::StatusOr<int> Show(Watched& watched, const Terminal& terminal) {
  auto screen = CursesTerminal::Open(terminal.color);
  if (!screen.ok()) return screen.status();
  TopChoice choice;
  TopModel shown;  // drawn while the display is frozen
  auto looked = Clock::now();
  while (true) {
    if (Clock::now() - looked > kLookForProcesses) {
      watched.LookForProcesses(choice.order);
      looked = Clock::now();
    }
    watched.Take();
    if (!choice.frozen) shown = watched.model();
    // It remains the chosen one if others are added before it.
    const TopProcess* const chosen = shown.FindOrFirst(choice.pid);
    if (chosen != nullptr) choice.pid = chosen->pid;
    (*screen)->Show(DrawTop(shown, choice, (*screen)->size()));
    const int key = (*screen)->WaitForKey(kKeyWaitMs);
    if (key == CursesTerminal::kNoKey) continue;
    const size_t rows = chosen == nullptr ? 0 : SitesShown(*chosen, choice.filter).size();
    const TopAction action = choice.OnKey(key, NextPid(shown, choice.pid), rows);
    if (action == TopAction::kQuit) return kDone;
    if (action == TopAction::kOrder) watched.SetOrder(choice.order);
    if (action == TopAction::kSnapshot || action == TopAction::kMark)
      choice.message = Ask(watched, choice, action);
  }
}

absl::StatusOr<int> Top(const TopArguments& options, const Terminal& terminal) {
  uint64_t pid = 0;
  if (!options.pid.empty() && (!absl::SimpleAtoi(options.pid, &pid) || pid == 0))
    return UsageError(absl::StrCat("top: ", options.pid, " is not a process ID"));
  if (options.interval < 0.1 || options.interval > 60)
    return UsageError("--interval: expected 0.1 to 60 seconds");
  Watched watched(pid, static_cast<uint32_t>(options.interval * 1000));
  const auto deadline = Clock::now() + kStartPatience;
  while (watched.LookForProcesses(control::BY_LIVE) && watched.model().processes().empty() &&
         Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const bool is_printed = options.once || options.json || !terminal.is_terminal;
  if (watched.model().processes().empty() && (is_printed || pid != 0))
    return NothingToShow(options);
  return is_printed ? Print(options, watched, terminal) : Show(watched, terminal);
}

}  // namespace

void AddTop(Program& program) {
  auto options = std::make_shared<TopArguments>();
  Command command =
      program.AddVerb("top", "Show what recorded processes hold, while they run",
                      [options](const Terminal& terminal) { return Top(*options, terminal); });
  command.OptionalArgument("PID", &options->pid, "only this process");
  command.Option("--interval", &options->interval, "SECONDS", "time between updates (default 1)");
  command.Flag("--once", &options->once, "print once and exit; the default without a terminal");
  command.Flag("--json", &options->json, "print once, as JSON");
}

}  // namespace gmt::cli
