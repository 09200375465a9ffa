#include "cli/live/live_session.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/live/control_session.h"
#include "collector/sessions/session_search.h"
#include "format/printable.h"

namespace gmt::cli {
namespace {

using collector::SessionState;
using collector::SessionSummary;
using viewer::LiveNews;

constexpr std::chrono::milliseconds kBetweenConnections{300};
// A collector that has just ended may hold its session for a moment longer.
constexpr int kMaxFailedLookups = 5;
constexpr size_t kProcessesNamed = 20;

std::string NameOf(uint64_t pid) { return absl::StrCat("process ", pid); }

absl::Status NoUniqueProcess(const std::vector<SessionSummary>& recorded) {
  if (recorded.empty()) {
    return absl::NotFoundError(
        "no process is being recorded. Start one with: gpumemtrace run -- COMMAND, or attach to a "
        "running one with: gpumemtrace attach PID");
  }
  std::string list;
  for (size_t i = 0; i < std::min(recorded.size(), kProcessesNamed); ++i) {
    absl::StrAppend(&list, "\n  ", recorded[i].pid, "  ",
                    format::Printable(absl::StrJoin(recorded[i].argv, " ")));
  }
  if (recorded.size() > kProcessesNamed) absl::StrAppend(&list, "\n  ...");
  return absl::FailedPreconditionError(
      absl::StrCat(recorded.size(),
                   " processes are being recorded. Name those to follow, for "
                   "example: ",
                   "gpumemtrace view --live ", recorded.front().pid, ":", list));
}

absl::StatusOr<std::string> OnlySession(bool* may_start) {
  std::vector<SessionSummary> sessions = collector::FindSessions();
  std::vector<SessionSummary> recorded;
  for (SessionSummary& session : sessions) {
    *may_start |= session.state == SessionState::kUnattended;
    if (session.state == SessionState::kRecording) recorded.push_back(std::move(session));
  }
  if (recorded.size() == 1) return recorded.front().path;
  *may_start &= recorded.empty();
  return NoUniqueProcess(recorded);
}

// A process without a session is not being recorded yet. Adds how to record it.
absl::Status WithAdvice(const std::string& name, const absl::Status& status) {
  if (!absl::IsNotFound(status) || name.find_first_not_of("0123456789") != std::string::npos)
    return status;
  return absl::NotFoundError(absl::StrCat(
      std::string(status.message()), "\nTo record a running process: gpumemtrace attach ", name));
}

}  // namespace

absl::StatusOr<std::vector<viewer::LiveProcess>> FindLiveProcesses(
    const std::vector<std::string>& names) {
  std::vector<std::string> wanted = names;
  if (wanted.empty()) {
    auto only = WhileItStarts(OnlySession);
    if (!only.ok()) return only.status();
    wanted.push_back(*std::move(only));
  }
  std::vector<viewer::LiveProcess> processes;
  for (const std::string& name : wanted) {
    auto found = ConnectToCollector(name);
    if (!found.ok()) return WithAdvice(name, found.status());
    const uint64_t pid = found->session.pid;
    processes.push_back({NameOf(pid), std::make_unique<LiveSession>(found->session.path, pid,
                                                                    std::move(found->client))});
  }
  return processes;
}

LiveSession::LiveSession(std::string session, uint64_t pid, std::unique_ptr<control::Client> client)
    : session_(std::move(session)), pid_(pid), client_(std::move(client)) {
  news_.path = client_->hello().recording();
  thread_ = std::thread([this] { Run(); });
}

LiveSession::~LiveSession() {
  Stop();
  thread_.join();
}

LiveNews LiveSession::Wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return stop_ || published_ != taken_; });
  taken_ = published_;
  return news_;
}

void LiveSession::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

void LiveSession::SetState(LiveNews::State state, std::string words) {
  {
    const std::lock_guard lock(mutex_);
    if (news_.state == state && news_.words == words) return;
    news_.state = state;
    news_.words = std::move(words);
    ++published_;
  }
  changed_.notify_all();
}

void LiveSession::TakeStatus(const control::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    news_.state = LiveNews::State::kFollowing;
    news_.words = status.stalled()
                      ? absl::StrCat("the recording cannot be written: ", status.stall_reason())
                      : std::string();
    // Events in the ring that the collector has not read yet are not in the file.
    news_.now_ns = status.lag_ns() > 0 ? status.newest_t_ns() : status.t_ns();
    news_.events_per_second = status.events_per_second();
    news_.heaps.clear();
    for (const control::HeapStatus& heap : status.heaps()) {
      news_.heaps.push_back({heap.has_device() ? std::optional(heap.device()) : std::nullopt,
                             heap.heap(), heap.live_bytes(), heap.live_count()});
    }
    ++published_;
  }
  changed_.notify_all();
}

void LiveSession::Run() {
  while (!stop_) {
    if (client_ != nullptr) {
      const auto begun = std::chrono::steady_clock::now();
      Follow();
      client_.reset();
      // If more clients follow the process than the collector serves, each new one displaces
      // another.
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, begun + kBetweenConnections, [this] { return stop_.load(); });
    }
    if (stop_ || !FindCollector()) return;
    if (client_ == nullptr) std::this_thread::sleep_for(kBetweenConnections);
  }
}

void LiveSession::Follow() {
  control::Subscribe request;
  request.set_what(what_);
  request.set_interval_ms(kIntervalMs);
  bool has_answered = false, refused = false, is_busy = false;
  (void)client_->Subscribe(request, [&](const control::Reply& reply) {
    if (reply.has_status()) {
      TakeStatus(reply.status());
      has_answered = true;
      failed_lookups_ = 0;
    }
    refused = !has_answered && !reply.error().empty();
    is_busy = refused && absl::StrContains(reply.error(), "busy");
    return !stop_ && !refused;
  });
  // A collector of an earlier release supports only STATUS, and writes the recording at its own
  // times.
  if (refused && !is_busy) {
    what_ = what_ == control::Subscribe::RECORDING ? control::Subscribe::STATUS
                                                   : control::Subscribe::RECORDING;
  }
}

bool LiveSession::FindCollector() {
  auto client = control::Client::Connect(session_);
  if (client.ok()) {
    client_ = *std::move(client);
    const std::lock_guard lock(mutex_);
    news_.path = client_->hello().recording();
    return true;
  }
  const auto session = collector::SummariseFile(session_);
  const bool is_gone = absl::IsNotFound(session.status());
  const SessionState state = session.ok() ? session->state : SessionState::kCollected;
  switch (state) {
    case SessionState::kUnattended:
      SetState(LiveNews::State::kLost, absl::StrCat("the collector of ", NameOf(pid_),
                                                    " is gone; retrying. Start one "
                                                    "with: gpumemtrace collect ",
                                                    pid_));
      return true;
    case SessionState::kRecording:
      SetState(LiveNews::State::kLost,
               absl::StrCat("the collector of ", NameOf(pid_), " does not answer; retrying"));
      return true;
    default:
      break;
  }
  // The collector may be about to mark its session as collected.
  if (!is_gone && state != SessionState::kCollected && ++failed_lookups_ < kMaxFailedLookups)
    return true;
  if (state == SessionState::kOrphaned) {
    SetState(LiveNews::State::kEnded,
             absl::StrCat(NameOf(pid_),
                          " has ended after its collector did. Write the rest of its "
                          "recording with: gpumemtrace collect ",
                          session_));
  } else if (state == SessionState::kDormant) {
    SetState(LiveNews::State::kEnded,
             absl::StrCat(NameOf(pid_), " was detached and keeps running"));
  } else if (session.ok() && !session->damage.empty()) {
    SetState(LiveNews::State::kEnded,
             absl::StrCat(NameOf(pid_), " cannot be followed any longer: ", session->damage));
  } else {
    SetState(LiveNews::State::kEnded, absl::StrCat(NameOf(pid_), " has ended"));
  }
  return false;
}

}  // namespace gmt::cli
