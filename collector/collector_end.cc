// The end of a recording (collector/collector.h, E1 to E4), and of a part of one.

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/collector.h"
#include "collector/events/torch_source.h"
#include "collector/sessions/libraries.h"
#include "format/definitions_builder.h"
#include "session/arena_reader.h"

namespace gmt::collector {
namespace {

constexpr int kIdleRoundsAtEnd = 8;  // for a dead process: no more records will come
constexpr uint64_t kSettleAtEnd = kSecond / 5;
constexpr uint64_t kNamingAfterDeath = 60 * kSecond;
constexpr uint64_t kNamingAfterStop = 2 * kSecond;
constexpr uint64_t kDevicePatience = kSecond / 10;
constexpr uint64_t kDetachPatience = kSecond / 4;
constexpr uint64_t kDiskPatience = 10 * kSecond;

}  // namespace

void Collector::EndPartIfDue() {
  const char* why = output_.WhyToEndPart(recorder_.bytes_of_part(), recorder_.has_events_of_part());
  if (why != nullptr) EndPart(why);
}

void Collector::EndPart(const char* why) {
  std::unique_ptr<OutputFile> next = output_.CreatePart();
  if (next == nullptr) return;
  const session::Header& session = deps_.session.header();
  RequestNames();
  WriteNames();
  gmt::Facts end;
  end.set_ended_by(why);
  end.set_end_t_ns(static_cast<int64_t>(recorder_.newest_ns() - session.monotonic_ns));
  *end.mutable_losses() = MakeLosses(deps_.session.control(), drain_.losses());
  recorder_.AddFacts(end);
  recorder_.Flush();

  gmt::Header header = MakeHeader(session, info_);
  header.set_part(output_.next_part());
  gmt::Facts facts = MakeStartFacts(session, info_);
  devices_.AddTo(recorder_.devices(), &facts);
  OutputFile* file = next.get();
  auto ending =
      recorder_.BeginPart(std::move(next), header, facts, drain_.exactness(), drain_.losses());
  if (ending == nullptr) return;  // the recorder's status() has the reason
  output_.BeginPart(file, std::move(ending), recorder_.bytes_of_part());
}

gmt::Exit Collector::ExitOfTarget(TargetState state) {
  if (state == TargetState::kDead)
    return FindExit(*deps_.target, deps_.session.control(), deps_.clock);
  gmt::Exit exit;
  exit.set_kind(state == TargetState::kEnding ? gmt::Exit::EXITED : gmt::Exit::RUNNING);
  exit.set_known_by(state == TargetState::kEnding ? "shim" : "collector");
  return ExitFromSession(deps_.session.control()).value_or(exit);
}

void Collector::AddLateFacts(const gmt::Exit& exit) {
  const uint64_t start_ns = deps_.session.header().monotonic_ns;
  gmt::Facts facts;
  Libraries libraries;
  if (deps_.target->IsAlive()) libraries = FindLibraries(deps_.target->pid());
  if (const std::string python = FactText(session::kPythonVersion); !python.empty())
    libraries["python"] = python;
  AddLibraries(libraries, &facts);
  *facts.mutable_exit() = exit;
  if (IsDetached()) {
    facts.set_ended_by("detach");
  } else if (output_.has_parts() && CheckTarget() != TargetState::kRunning) {
    facts.set_ended_by("exit");  // earlier parts have their own reason
  }
  facts.set_end_t_ns(static_cast<int64_t>(std::max(recorder_.newest_ns(), alive_ns_) - start_ns));
  *facts.mutable_losses() = MakeLosses(deps_.session.control(), drain_.losses());
  devices_.TakeChanged();
  devices_.AddTo(recorder_.devices(), &facts);
  AddSources(&facts);
  recorder_.AddFacts(facts);
}

std::string Collector::FactText(session::Fact fact) const {
  return session::ReadText(deps_.session,
                           deps_.session.control().facts[fact].load(std::memory_order_acquire));
}

// Adds the sources' states as reported by the traced process, and for the others whether they
// delivered anything.
void Collector::AddSources(gmt::Facts* facts) {
  std::map<std::string, std::string> sources = {
      {"cupti", "off"}, {"nvtx", "off"}, {"python", "off"}};
  sources["nvml"] = devices_.Source(recorder_.saw_sample());
  sources["pytorch"] = TorchSource(info_, options_, FactText(session::kPytorchSource),
                                   recorder_.stacks().FindLibrary(kCachingAllocator));
  if (const std::string autograd = FactText(session::kAutogradSource); !autograd.empty())
    sources["autograd"] = autograd;
  if (!options_.roles) sources["roles"] = "off: not asked for";
  // As reported by the traced process.
  const std::pair<const char*, session::Fact> reported[] = {
      {"python", session::kPythonSource},
      {"roles", session::kRolesSource},
      {"cupti", session::kCuptiSource},
      {"nvtx", session::kNvtxSource},
      {"before_attach", session::kBeforeAttachSource}};
  for (const auto& [name, fact] : reported) {
    if (const std::string text = FactText(fact); !text.empty()) sources[name] = text;
  }
  for (const auto& [name, value] : info_.sources) sources[name] = value;
  if (!info_.unwinder.empty()) sources["native_stacks"] = info_.unwinder;
  if (!deps_.listen_note.empty()) sources["metrics"] = deps_.listen_note;
  if (const std::string note = output_.Note(deps_.output_note); !note.empty())
    sources["output"] = note;
  if (IsCut()) sources["session"] = "was truncated while it was read; what it held then is missing";
  for (const auto& [name, value] : sources) AddSetting(facts->mutable_sources(), name, value);
}

uint64_t Collector::NamingBudget(TargetState state) const {
  if (state == TargetState::kDead) return kNamingAfterDeath;
  return state == TargetState::kEnding ? options_.exit_wait_ns / 10 * 6 : kNamingAfterStop;
}

// A process between two GPU calls detaches at its next one, however late that is.
void Collector::WaitUntilDetached() {
  const uint64_t began = deps_.clock->NowNs();
  while (deps_.session.control().attach_now.load(std::memory_order_acquire) == attach_ &&
         deps_.target->IsAlive() && deps_.clock->NowNs() - began < kDetachPatience) {
    deps_.clock->Wait(kBusyWait);
  }
}

absl::Status Collector::Finish() {
  const bool detached = IsDetached();
  if (detached) WaitUntilDetached();
  if (deps_.mailbox != nullptr) deps_.mailbox->Close("the recording is being completed");
  const TargetState state = CheckTarget();
  // A target that continues may write forever, so only what was written before now is read.
  const TargetState drained_as = state == TargetState::kDead ? state : TargetState::kEnding;
  const uint64_t end = drain_.tail(), began = deps_.clock->NowNs();
  // Everything written before the end is read, however long that takes. A recovery may never
  // settle, and an overwritten tail may never be reached; so the loop also ends when there is no
  // progress.
  uint64_t moved_ns = began;
  int idle_rounds = 0;
  while ((drain_.position() < end || drain_.recovering()) && !IsCut()) {
    const uint64_t position = drain_.position();
    const bool more = drain_.DrainSome(drained_as);
    const uint64_t now = deps_.clock->NowNs();
    const bool moved = drain_.position() != position;
    idle_rounds = moved ? 0 : idle_rounds + 1;
    if (moved && position < end) moved_ns = now;
    if (state == TargetState::kDead ? idle_rounds > kIdleRoundsAtEnd
                                    : now - moved_ns > kSettleAtEnd) {
      break;
    }
    if (!more && drained_as != TargetState::kDead) deps_.clock->Wait(kBusyWait);
  }
  const bool settled = !drain_.GiveUp();
  const Exactness exactness = settled
                                  ? drain_.exactness()
                                  : Exactness{"events are being lost faster than they can be read"};
  // A dead process holds no device memory any more.
  if (state != TargetState::kDead)
    devices_.ShowAtEnd(&recorder_, std::min(kDevicePatience, options_.exit_wait_ns / 10));
  devices_.WriteSamples(&recorder_, /*drained=*/true);
  if (output_.has_parts() || recorder_.leaks() != nullptr) recorder_.AddAggregates();
  if (detached) {
    recorder_.AddSnapshot("detach", "detach", exactness, drain_.losses());
  } else if (options_.snapshot_at_exit) {
    recorder_.AddSnapshot("exit", "exit", exactness, drain_.losses());
  }
  if (settled && attach_ == 0) recorder_.AddLastCheckpoint(exactness, drain_.losses());
  recorder_.Flush();
  AddLateFacts(ExitOfTarget(state));
  RequestNames();
  namer_.WaitUntilDone(NamingBudget(state));
  WriteNames();

  const absl::Status status = output_.Complete(recorder_.Finish(), kDiskPatience);
  if (absl::Status output = output_.Check(); !output.ok()) return output;
  if (status.ok() && state != TargetState::kRunning) {
    deps_.session.control().finished.store(session::Handshake::kDone, std::memory_order_release);
  }
  return status;
}

}  // namespace gmt::collector
