#include "collector/collector.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/libraries.h"

namespace gmt::collector {
namespace {

using Outcome = SessionDrain::Outcome;

constexpr uint64_t kBusyWait = kMillisecond;
constexpr uint64_t kIdleWait = 50 * kMillisecond;
constexpr uint64_t kFlushEvery = kSecond / 2;   // the file is never more than a second behind
constexpr uint64_t kFactsEvery = 10 * kSecond;  // libraries come late, losses at any time
constexpr int kRecordsPerRound = 65536;
constexpr uint64_t kSettleAtEnd = kSecond / 5;
constexpr uint64_t kNamingAfterDeath = 60 * kSecond;
constexpr uint64_t kNamingAfterStop = 2 * kSecond;
constexpr uint64_t kDiskPatience = 10 * kSecond;

session::Options ParseOptions(const Pairs& pairs) {
  session::Options options;
  for (const auto& [key, value] : pairs) {
    const std::string text = value.empty() ? key : absl::StrCat(key, "=", value);
    session::ParseOptions(
        text, &options, [](void*, const session::OptionError&) {}, nullptr);
  }
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collector>> Collector::Start(const Surroundings& around,
                                                            std::unique_ptr<OutputFile> output) {
  SessionInfo info = ReadSessionInfo(around.session);
  OutputFile* file = output.get();
  auto writer = format::RecordingWriter::Create(std::move(output),
                                                MakeHeader(around.session.header(), info), {});
  if (!writer.ok()) return writer.status();
  std::unique_ptr<Collector> collector(
      new Collector(around, std::move(info), file, *std::move(writer)));
  collector->recorder_.AddFacts(MakeStartFacts(around.session.header(), collector->info_));
  return collector;
}

Collector::Collector(const Surroundings& around, SessionInfo info, OutputFile* output,
                     std::unique_ptr<format::RecordingWriter> writer)
    : around_(around),
      info_(std::move(info)),
      options_(ParseOptions(info_.options)),
      output_(output),
      drain_(around.session, around.clock),
      recorder_(around.session, info_, around.target, std::move(writer)),
      namer_(""),
      flushed_ns_(around.clock->NowNs()),
      facts_due_ns_(flushed_ns_ + kFlushEvery) {}

bool Collector::TargetHasEnded() { return LookAtTarget() != TargetState::kRunning; }

TargetState Collector::LookAtTarget() {
  if (!around_.target->IsAlive()) return TargetState::kDead;
  alive_ns_ = around_.clock->NowNs();
  const auto closing = around_.session.control().closing.load(std::memory_order_acquire);
  return closing == session::Handshake::kNone ? TargetState::kRunning : TargetState::kEnding;
}

absl::Status Collector::Run() {
  uint64_t wait = kBusyWait;
  while (true) {
    // Asked before the ring is read: what was written before the end is then read as well.
    const bool ending = TargetHasEnded() || stop_.load(std::memory_order_relaxed);
    const uint64_t position = drain_.position();
    const bool more = Round();
    if (ending) return Finish();
    if (more) continue;
    wait = drain_.position() != position ? kBusyWait : std::min(wait * 2, kIdleWait);
    around_.clock->Wait(wait);
  }
}

bool Collector::Round() {
  bool more = false;
  if (!output_->stalled() || output_->Retry().ok()) {
    DrainSome(LookAtTarget(), &more);
    if (!more) AskForNames();
    FlushIfDue();
  }
  return more;
}

void Collector::DrainSome(TargetState state, bool* more) {
  session::Record record;
  uint64_t ticket;
  session::RingReader::Lost lost;
  *more = false;
  for (int n = 0; n < kRecordsPerRound; ++n) {
    switch (drain_.Next(state, &record, &ticket, &lost)) {
      case Outcome::kRecord:
        if (recovery_.active()) {
          recovery_.Hold(record, ticket);
          if (recovery_.Settled(drain_.position())) Recover(/*caught_up=*/true);
        } else {
          Deliver(record, ticket);
        }
        break;
      case Outcome::kLost:
        Lose(lost);
        break;
      case Outcome::kEmpty:
      case Outcome::kPending:
        Recover(/*caught_up=*/true);
        return;
    }
  }
  *more = true;
  Recover(/*caught_up=*/false);
}

void Collector::Lose(const session::RingReader::Lost& lost) {
  const std::vector<HeldRecord> held = recovery_.Begin(lost.last + 1);
  if (!held.empty()) WriteGaps(held.front().record.time_ns);
  Release(held);
  if (!gaps_.empty() && gaps_.back().why == lost.why && gaps_.back().last + 1 == lost.first) {
    gaps_.back().last = lost.last;
  } else {
    gaps_.push_back(lost);
  }
}

// Drives a recovery as far as it goes now. A reader that never catches up scans where it is, once
// it has held a whole lap.
void Collector::Recover(bool caught_up) {
  if (drain_.TakeDisturbed()) {
    if (!recovery_.active()) Release(recovery_.Begin(drain_.position()));
    recovery_.ForgetScan();
  }
  if (!recovery_.active()) return;
  if (!recovery_.scanned()) {
    if (!caught_up && recovery_.held() < drain_.capacity()) return;
    recovery_.Scan(around_.session.live(), [&] { return drain_.tail(); });
  }
  if (!recovery_.Settled(drain_.position())) return;
  std::vector<HeldRecord> held;
  const Corrections corrections = recovery_.Resolve(recorder_.live(), &held);
  const uint64_t to_ns = held.empty() ? around_.clock->NowNs() : held.front().record.time_ns;
  WriteGaps(to_ns);
  recorder_.AddCorrections(corrections, to_ns);
  recovered_ = true;
  Release(held);
}

void Collector::WriteGaps(uint64_t to_ns) {
  for (const auto& lost : std::exchange(gaps_, {})) recorder_.AddGap(lost, to_ns);
}

void Collector::Release(const std::vector<HeldRecord>& held) {
  for (const auto& [record, ticket] : held) Deliver(record, ticket);
}

void Collector::Deliver(const session::Record& record, uint64_t ticket) {
  recorder_.Add(record, ticket);
  if (recorder_.live().TakeUnknownUndo()) Release(recovery_.Begin(drain_.position()));
  if (!options_.snapshot_at_oom) return;
  const std::string name = oom_.SnapshotFor(record);
  if (name.empty()) return;
  recorder_.AddSnapshot(name, "oom", ExactnessNow(), drain_.losses());
  recorder_.Flush();
}

Exactness Collector::ExactnessNow() const {
  const auto count = [&](session::Counter counter) {
    return around_.session.control().counters[counter].load(std::memory_order_acquire);
  };
  const std::pair<bool, const char*> reasons[] = {
      {recovery_.active() || !gaps_.empty(), "events are being lost faster than they can be read"},
      {count(session::kBeforeSession) != 0, "calls were made while the recording was being set up"},
      {recovered_ && count(session::kLiveFull) != 0,
       "events were lost and the table of live allocations was full"},
      {recovered_ && count(session::kUnrepresentable) != 0,
       "events were lost and the table of live allocations cannot hold some addresses"},
  };
  for (const auto& [holds, why] : reasons) {
    if (holds) return {why};
  }
  return {};
}

void Collector::AskForNames() {
  std::vector<symbols::FrameRequest> requests;
  for (const StackTranslator::NativeFrame& frame : recorder_.stacks().TakeNewFrames()) {
    const session::ModuleCopy& module = recorder_.stacks().module(frame.module);
    requests.push_back({frame.frame,
                        {module.path, module.build_id},
                        frame.address,
                        symbols::AddressKind::kReturn});
  }
  namer_.Add(std::move(requests));
}

void Collector::WriteNames() {
  const gmt::Symbols names = namer_.TakeNames(recorder_.definitions());
  if (names.count() > 0) recorder_.AddSymbols(names);
}

void Collector::FlushIfDue() {
  const uint64_t now = around_.clock->NowNs();
  if (now - flushed_ns_ < kFlushEvery) return;
  flushed_ns_ = now;
  if (now >= facts_due_ns_) {
    facts_due_ns_ = now + kFactsEvery;
    gmt::Facts facts;
    AddLibraries(FindLibraries(around_.target->pid()), &facts);
    *facts.mutable_losses() = MakeLosses(around_.session.control(), drain_.losses());
    recorder_.AddFacts(facts);
  }
  WriteNames();
  recorder_.Flush();
}

gmt::Exit Collector::ExitOfTarget(TargetState state) {
  if (state == TargetState::kDead)
    return FindExit(*around_.target, around_.session.control(), around_.clock);
  gmt::Exit exit;
  exit.set_kind(state == TargetState::kEnding ? gmt::Exit::EXITED : gmt::Exit::RUNNING);
  exit.set_known_by(state == TargetState::kEnding ? "shim" : "collector");
  return ExitFromSession(around_.session.control()).value_or(exit);
}

void Collector::AddLateFacts(const gmt::Exit& exit) {
  const uint64_t start_ns = around_.session.header().monotonic_ns;
  gmt::Facts facts;
  if (around_.target->IsAlive()) AddLibraries(FindLibraries(around_.target->pid()), &facts);
  *facts.mutable_exit() = exit;
  facts.set_end_t_ns(static_cast<int64_t>(std::max(recorder_.newest_ns(), alive_ns_) - start_ns));
  *facts.mutable_losses() = MakeLosses(around_.session.control(), drain_.losses());
  std::vector<uint32_t> devices(recorder_.devices().begin(), recorder_.devices().end());
  std::sort(devices.begin(), devices.end());
  for (const uint32_t index : devices) facts.add_devices()->set_index(index);
  AddSources(&facts);
  if (output_->stalls() > 0) {
    AddSetting(facts.mutable_sources(), "output",
               absl::StrCat("the disk was full ", output_->stalls(),
                            " time(s); events from then may be missing"));
  }
  recorder_.AddFacts(facts);
}

// What the traced process says of its sources, and of the others whether anything came from them.
void Collector::AddSources(gmt::Facts* facts) const {
  std::map<std::string, std::string> sources = {
      {"cupti", "off"}, {"nvml", "off"}, {"python", "off"}};
  sources["pytorch"] = recorder_.saw(session::Memory::kBlock) ? "on" : "off";
  sources["nvtx"] = recorder_.saw(session::Memory::kRegion) ? "on" : "off";
  for (const auto& [name, value] : info_.sources) sources[name] = value;
  if (!info_.unwinder.empty()) sources["native_stacks"] = info_.unwinder;
  for (const auto& [name, value] : sources) AddSetting(facts->mutable_sources(), name, value);
}

uint64_t Collector::NamingBudget(TargetState state) const {
  if (state == TargetState::kDead) return kNamingAfterDeath;
  return state == TargetState::kEnding ? options_.exit_wait_ns / 10 * 6 : kNamingAfterStop;
}

absl::Status Collector::Finish() {
  const TargetState state = LookAtTarget();
  // A target that goes on may write for ever: what came before now is enough.
  const TargetState drained_as = state == TargetState::kDead ? state : TargetState::kEnding;
  const uint64_t end = drain_.tail(), began = around_.clock->NowNs();
  while (drain_.position() < end || recovery_.active()) {
    bool more;
    DrainSome(drained_as, &more);
    // What was written before the end is read however long it takes; only a recovery may not settle.
    if (drain_.position() >= end && state != TargetState::kDead &&
        around_.clock->NowNs() - began > kSettleAtEnd) {
      break;
    }
    if (!more && drained_as != TargetState::kDead) around_.clock->Wait(kBusyWait);
  }
  const std::vector<HeldRecord> held = recovery_.GiveUp();
  const Exactness exactness = held.empty()
                                  ? ExactnessNow()
                                  : Exactness{"events are being lost faster than they can be read"};
  WriteGaps(held.empty() ? around_.clock->NowNs() : held.front().record.time_ns);
  Release(held);
  if (options_.snapshot_at_exit) recorder_.AddSnapshot("exit", "exit", exactness, drain_.losses());
  recorder_.Flush();
  AddLateFacts(ExitOfTarget(state));
  AskForNames();
  namer_.WaitUntilDone(NamingBudget(state));
  WriteNames();

  absl::Status status = recorder_.Finish();
  for (uint64_t waited = 0; output_->stalled() && waited < kDiskPatience; waited += kIdleWait) {
    status = output_->Retry();
    if (!status.ok()) around_.clock->Wait(kIdleWait);
  }
  around_.session.control().finished.store(session::Handshake::kDone, std::memory_order_release);
  return status;
}

}  // namespace gmt::collector
