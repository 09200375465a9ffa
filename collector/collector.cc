#include "collector/collector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/events/torch_source.h"
#include "collector/sessions/libraries.h"
#include "format/definitions_builder.h"
#include "session/arena_reader.h"

namespace gmt::collector {
namespace {

constexpr uint64_t kFlushEvery = kSecond / 2;   // the file lags by less than a second
constexpr uint64_t kFactsEvery = 10 * kSecond;  // libraries load late; losses occur at any time

session::Options ParseOptions(const Pairs& pairs) {
  session::Options options;
  for (const auto& [key, value] : pairs) {
    const std::string text = value.empty() ? key : absl::StrCat(key, "=", value);
    session::ParseOptions(
        text, &options, [](void*, const session::OptionError&) {}, nullptr);
  }
  return options;
}

std::string SettingOf(const SessionInfo& info, const std::string& name) {
  for (const auto& [key, value] : info.settings) {
    if (key == name) return value;
  }
  return "";
}

std::unique_ptr<DeviceSource> MakeDeviceSource(const CollectorDependencies& deps) {
  return deps.device_source && deps.target->IsAlive() ? deps.device_source() : nullptr;
}

// Returns the attach that is recorded, which may have ended before its collector was ready; 0 if
// the session has no attach gate.
uint32_t AttachOf(const session::SessionMap& session) {
  return session.has_attach_gate() ? session.control().attach_last.load(std::memory_order_acquire)
                                   : 0;
}

// Searches for leaks if the program was attached to or if events are not kept forever.
std::shared_ptr<LiveLeaks> LeaksToWatch(const CollectorDependencies& deps, bool forgets) {
  const bool attached = AttachOf(deps.session) != 0;
  if (!attached && !forgets) return nullptr;
  return std::make_shared<LiveLeaks>(deps.session.header().pid, attached);
}

symbols::SymbolizerOptions MakeSymbolizerOptions(const TargetFiles& files) {
  symbols::SymbolizerOptions options;
  options.root = files.root();
  options.process = files.process();
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collector>> Collector::Start(const CollectorDependencies& deps,
                                                            std::unique_ptr<OutputFile> output) {
  SessionInfo info = ReadSessionInfo(deps.session);
  OutputFile* file = output.get();
  const session::Options options = ParseOptions(info.options);
  format::WriterOptions how;
  how.strip = {options.strip_paths, options.strip_args, info.cwd};
  how.parts = deps.parts != nullptr && LimitsOf(options).bounded();
  how.slots = true;
  if (deps.mailbox != nullptr) {
    control::NameChunk first;
    first.is_new_recording = true;
    deps.mailbox->Open();
    deps.mailbox->AddNames(std::move(first));
    how.on_definitions = [mailbox = deps.mailbox](const gmt::Definitions& definitions) {
      control::NameChunk names;
      names.definitions = definitions;
      mailbox->AddNames(std::move(names));
    };
  }
  const std::shared_ptr<LiveLeaks> leaks = LeaksToWatch(deps, how.parts);
  if (leaks != nullptr) {
    how.on_definitions = [leaks, others = how.on_definitions](const gmt::Definitions& names) {
      leaks->OnDefinitions(names);
      if (others) others(names);
    };
  }
  auto writer = format::RecordingWriter::Create(std::move(output),
                                                MakeHeader(deps.session.header(), info), how);
  if (!writer.ok()) return writer.status();
  std::unique_ptr<Collector> collector(
      new Collector(deps, std::move(info), file, *std::move(writer)));
  collector->recorder_.WatchLeaks(leaks);
  collector->recorder_.AddFacts(MakeStartFacts(deps.session.header(), collector->info_));
  return collector;
}

Collector::Collector(const CollectorDependencies& deps, SessionInfo info, OutputFile* output,
                     std::unique_ptr<format::RecordingWriter> writer)
    : deps_(deps),
      info_(std::move(info)),
      options_(ParseOptions(info_.options)),
      output_(output, deps.clock, deps.next_output, deps.parts, LimitsOf(options_)),
      attach_(AttachOf(deps.session)),
      recorder_(deps.session, info_, deps.target, std::move(writer)),
      drain_({deps.session, deps.clock, &recorder_, [this] { return IsCut(); },
              [this](const session::Record& record, uint64_t ticket) { Deliver(record, ticket); },
              [this] { return EndOfLossNs(); }}),
      files_(deps.target->IsAlive() ? deps.target->pid() : 0),
      namer_(MakeSymbolizerOptions(files_), symbols::SymbolCache::DefaultDirectory()),
      devices_(MakeDeviceSource(deps), deps.target->pid(),
               SettingOf(info_, "CUDA_VISIBLE_DEVICES")),
      copies_({deps.session, deps.clock, &drain_, &devices_, &recorder_}),
      flushed_ns_(deps.clock->NowNs()),
      facts_due_ns_(flushed_ns_ + kFlushEvery) {
  policy_.Follow(options_, flushed_ns_);
}

bool Collector::IsDetached() const {
  return deps_.session.has_attach_gate() &&
         deps_.session.control().attach_wanted.load(std::memory_order_acquire) != attach_;
}

bool Collector::TargetHasEnded() { return CheckTarget() != TargetState::kRunning; }

TargetState Collector::CheckTarget() {
  if (!deps_.target->IsAlive()) return TargetState::kDead;
  alive_ns_ = deps_.clock->NowNs();
  const auto closing = deps_.session.control().closing.load(std::memory_order_acquire);
  return closing == session::Handshake::kNone ? TargetState::kRunning : TargetState::kEnding;
}

absl::Status Collector::Run() {
  uint64_t wait = kBusyWait;
  while (true) {
    // Checked before the ring is read, so that everything written before the end is read.
    const bool ending =
        TargetHasEnded() || IsDetached() || stop_.load(std::memory_order_relaxed) || IsCut();
    const uint64_t position = drain_.position();
    const bool more = Round();
    if (ending) return Finish();
    if (absl::Status status = output_.CheckIfDue(); output_.has_next()) return status;
    if (more) continue;
    wait = NextWait(wait, drain_.position() - position, drain_.capacity());
    deps_.clock->Wait(wait);
  }
}

bool Collector::Round() {
  bool more = false;
  if (output_.IsWritable()) {
    more = drain_.DrainSome(CheckTarget());
    if (!more) RequestNames();
    devices_.WriteSamples(&recorder_, /*drained=*/!more && !drain_.recovering());
    SnapshotIfDue();
    FlushIfDue();
    if (!drain_.recovering() && attach_ == 0)
      recorder_.AddCheckpointIfDue(drain_.exactness(), drain_.losses());
    EndPartIfDue();
  }
  copies_.UpdateTrends();
  ServeMailbox(/*drained=*/!more && !output_.file().stalled());
  return more;
}

// Returns the end of a loss that nothing follows. The clock is not used for a dead process, because
// its session may be collected long after its end or in another boot; its own last moment is.
uint64_t Collector::EndOfLossNs() {
  if (CheckTarget() != TargetState::kDead) return deps_.clock->NowNs();
  return std::max(recorder_.newest_ns(), alive_ns_);
}

void Collector::Deliver(const session::Record& record, uint64_t ticket) {
  if (record.kind == session::Kind::kSnapshot) {
    AddSnapshot(session::ReadText(deps_.session, record.value), "request");
    return;
  }
  if (record.kind == session::Kind::kDevice && record.action == session::Action::kCreate) {
    devices_.AddDevice(MakeIdentity(record));
    return;
  }
  recorder_.Add(record, ticket);
  switch (record.kind) {
    case session::Kind::kFreeDone:
      if (recorder_.live().TakeUnknownUndo()) drain_.Recover();
      return;
    case session::Kind::kMark:
      if (policy_.at_marks())
        SnapshotAtMark(session::ReadText(deps_.session, record.value), record.time_ns);
      return;
    case session::Kind::kAllocFailed:
      return SnapshotIfOutOfMemory(record);
    default:
      return;
  }
}

void Collector::SnapshotIfOutOfMemory(const session::Record& failed) {
  if (!options_.snapshot_at_oom || !OomWatch::IsOutOfMemory(failed)) return;
  const std::string name = oom_.SnapshotFor(failed, MayBeRetried(failed));
  if (!name.empty()) AddSnapshot(name, "oom");
}

DeviceIdentity Collector::MakeIdentity(const session::Record& record) const {
  const auto text = [&](uint64_t id) { return session::ReadText(deps_.session, id); };
  DeviceIdentity identity;
  identity.index = record.device;
  identity.name = text(record.value);
  identity.key.pci_bus_id = text(record.stream & UINT32_MAX);
  identity.key.uuid = text(record.stream >> 32);
  identity.total_bytes = record.size;
  if (record.priority > 0)
    identity.compute_capability = absl::StrCat(record.priority / 10, ".", record.priority % 10);
  return identity;
}

void Collector::SnapshotAtMark(const std::string& name, uint64_t t_ns) {
  if (policy_.IsDueAtMark(name, t_ns)) AddSnapshot(name, "mark");
}

std::string Collector::AddSnapshot(const std::string& name, const std::string& reason) {
  devices_.ShowInSnapshot(&recorder_);
  const std::string given =
      recorder_.AddSnapshot(name, reason, drain_.exactness(), drain_.losses());
  recorder_.Flush();
  return given;
}

bool Collector::MayBeRetried(const session::Record& refused) {
  if (!recorder_.saw(session::Memory::kBlock)) return false;
  if (refused.stack == 0) return true;  // unknown: wait for the framework's report
  return IsCachingAllocator(recorder_.stacks().CallerOf(refused.stack));
}

void Collector::RequestNames() {
  std::vector<symbols::FrameRequest> requests;
  for (const StackTranslator::NativeFrame& frame : recorder_.stacks().TakeNewFrames()) {
    const session::ModuleCopy& module = recorder_.stacks().module(frame.module);
    requests.push_back({frame.frame,
                        {module.path, module.build_id},
                        frame.address,
                        frame.kind == session::StackFrame::Kind::kExact
                            ? symbols::AddressKind::kExact
                            : symbols::AddressKind::kReturn});
  }
  namer_.Add(std::move(requests));
}

void Collector::WriteNames() {
  const gmt::Symbols names = namer_.TakeNames(recorder_.definitions());
  if (names.count() == 0) return;
  recorder_.AddSymbols(names);
  if (deps_.mailbox == nullptr) return;
  control::NameChunk chunk;
  chunk.symbols = names;
  deps_.mailbox->AddNames(std::move(chunk));
}

void Collector::FlushIfDue() {
  const uint64_t now = deps_.clock->NowNs();
  if (now - flushed_ns_ >= kFlushEvery) Flush(now);
}

void Collector::Flush(uint64_t now) {
  flushed_ns_ = now;
  if (now >= facts_due_ns_) {
    facts_due_ns_ = now + kFactsEvery;
    gmt::Facts facts;
    AddLibraries(FindLibraries(deps_.target->pid()), &facts);
    *facts.mutable_losses() = MakeLosses(deps_.session.control(), drain_.losses());
    recorder_.AddFacts(facts);
  }
  WriteNames();
  WriteDevices();
  recorder_.Flush();
}

// Written immediately, so that the devices are known even if the collector dies.
void Collector::WriteDevices() {
  if (!devices_.TakeChanged()) return;
  gmt::Facts facts;
  devices_.AddTo(recorder_.devices(), &facts);
  recorder_.AddFacts(facts);
}

}  // namespace gmt::collector
