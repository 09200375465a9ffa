#include "collector/output/recorder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/output/aggregates.h"
#include "collector/output/snapshot.h"
#include "format/definitions_builder.h"

namespace gmt::collector {
namespace {

using session::LiveValue;
using session::Record;
using Loss = session::RingReader::Loss;

// The API of frees that were not recorded.
constexpr char kLostApi[] = "(lost)";

const char* NameOf(Loss why) {
  switch (why) {
    case Loss::kOverrun:
      return "overrun";
    case Loss::kHole:
      return "hole";
    case Loss::kAbandoned:
      return "abandoned";
    case Loss::kScribbled:
      return "damage";
  }
  return "damage";
}

gmt::Sample MakeSample(const Record& record) {
  const uint64_t free = record.value, total = record.size;
  gmt::Sample sample;
  if (record.device != session::kNoDevice) sample.set_device(record.device);
  sample.set_used_bytes(total - std::min(free, total));
  sample.set_total_bytes(total);
  sample.set_source("cudaMemGetInfo");
  return sample;
}

session::Kind EndOf(session::Kind kind) {
  switch (kind) {
    case session::Kind::kReserve:
      return session::Kind::kUnreserve;
    case session::Kind::kCreate:
      return session::Kind::kRelease;
    case session::Kind::kMap:
      return session::Kind::kUnmap;
    case session::Kind::kImport:
      return session::Kind::kUnimport;
    case session::Kind::kRegister:
      return session::Kind::kUnregister;
    default:
      return session::Kind::kFree;
  }
}

}  // namespace

Recorder::Recorder(const session::SessionMap& session, const SessionInfo& info,
                   const Target* target, std::unique_ptr<format::RecordingWriter> writer)
    : session_(session),
      target_(target),
      writer_(std::move(writer)),
      stacks_(session, &writer_->definitions(), info.shim),
      translator_(session, info.apis, &writer_->definitions(), &stacks_),
      newest_ns_(session.header().monotonic_ns) {
  live_.set_observer(&tally_);
}

void Recorder::Keep(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void Recorder::Write(const format::Event& event, format::AcquisitionSlot* slot) {
  if (leaks_) leaks_->OnEvent(event);
  Keep(writer_->Add(event, slot));
}

void Recorder::Write(const format::Event& event, const gmt::Sample& sample) {
  if (leaks_) leaks_->OnEvent(event, sample);
  Keep(writer_->Add(event, sample));
}

void Recorder::AddSymbols(const gmt::Symbols& symbols) {
  if (leaks_) leaks_->OnSymbols(symbols);
  Keep(writer_->Add(symbols));
}

void Recorder::Flush() {
  Keep(writer_->Flush());
  if (leaks_) leaks_->OnFlush();
}

void Recorder::Note(const Record& record) {
  newest_ns_ = std::max(newest_ns_, record.time_ns);
  seen_memory_ |= 1u << static_cast<int>(record.memory);
  tally_.Note(record);
  if (record.device == session::kNoDevice) return;
  devices_.set(record.device);
  if (record.kind == session::Kind::kSample) {
    ShowSample(MakeSample(record));
    saw_sample_ = true;
  }
}

void Recorder::Forget(const Place& place, const LiveModelEntry& live) {
  Record record = MakeRecord(place, live);
  record.stack = record.forward_stack = record.layout = 0;
  writer_->Forget(translator_.Translate(record), live.slot);
}

void Recorder::ForgetThreads() {
  threads_.clear();
  last_thread_ = 0;
}

void Recorder::AddThreadName(const Record& record) {
  if (target_ == nullptr || record.thread == 0 || record.thread == last_thread_) return;
  last_thread_ = record.thread;  // consecutive events often have the same thread
  if (!threads_.insert(record.thread).second) return;
  const std::string name = target_->ThreadName(record.thread);
  if (name.empty()) return;
  format::Event event;
  event.kind = gmt::THREAD;
  event.t_ns = translator_.Time(record.time_ns);
  event.thread = record.thread;
  event.present = format::kHasTime | format::kHasThread;
  event.name = writer_->definitions().InternString(name);
  Write(event);
}

void Recorder::Add(const Record& record, uint64_t ticket) {
  AddThreadName(record);
  const LiveModel::Applied applied = live_.Apply(record, ticket);
  Note(record);
  Record full = record;
  for (const auto& [place, live] : applied.forgotten) Forget(place, live);
  if (applied.ended != nullptr) {
    const LiveModelEntry& ended = *applied.ended;
    if (full.size == 0) full.size = ended.size;
    if (full.device == session::kNoDevice) full.device = ended.device;
    if (full.context == 0) full.context = ended.context;
    full.memory = ended.memory;
  }
  const format::Event event = translator_.Translate(full);
  record.kind == session::Kind::kSample ? Write(event, MakeSample(record))
                                        : Write(event, applied.slot);
}

void Recorder::AddSample(uint64_t time_ns, const gmt::Sample& sample) {
  format::Event event;
  event.kind = gmt::SAMPLE;
  event.t_ns = translator_.Time(time_ns);
  event.present = format::kHasTime;
  if (sample.has_device()) {
    event.device = sample.device();
    event.present |= format::kHasDevice;
  }
  newest_ns_ = std::max(newest_ns_, time_ns);
  ShowSample(sample);
  Write(event, sample);
}

void Recorder::AddGap(const session::RingReader::Lost& lost, uint64_t to_ns) {
  format::Event event;
  event.kind = gmt::GAP;
  event.t_ns = translator_.Time(newest_ns_);
  event.present = format::kHasTime;
  gmt::Gap gap;
  gap.set_to_t_ns(translator_.Time(std::max(to_ns, newest_ns_)));
  gap.set_events(lost.last - lost.first + 1);
  gap.set_reason(NameOf(lost.why));
  gap.set_first_ticket(lost.first);
  gap.set_last_ticket(lost.last);
  if (leaks_) leaks_->OnEvent(event);
  Keep(writer_->Add(event, gap));
}

void Recorder::AddCorrections(const Corrections& corrections, uint64_t to_ns) {
  const int64_t from = translator_.Time(newest_ns_);
  const int64_t behind = translator_.Time(to_ns);  // arbitrary if memory was overwritten
  const int64_t to = behind > from ? behind - 1 : from;
  for (auto [place, live] : corrections.ended) {
    Record record = MakeRecord(place, live);
    record.kind = EndOf(live.kind);
    record.stack = record.forward_stack = 0;
    format::Event event = translator_.Translate(record);
    event.t_ns = from;
    event.thread = 0;
    event.present &= ~uint64_t{format::kHasThread | format::kHasHandle | format::kHasTotals};
    event.api = writer_->definitions().InternString(kLostApi);
    live_.Erase(place);
    Write(event, &live.slot);
    writer_->Forget(event, live.slot);  // if its result follows, it is written in full
  }
  for (const auto& [place, live] : corrections.appeared) {
    const Record record = MakeRecord(place, live);
    AddThreadName(record);
    Note(record);
    format::Event event = translator_.Translate(record);
    event.t_ns = std::clamp(event.t_ns, from, to);
    event.present &= ~uint64_t{format::kHasTotals};
    LiveModelEntry* const entry = live_.Insert(place, live);
    Write(event, &entry->slot);
    if (live.roles != 0) AddRoles(place, entry, to);
  }
  for (const auto& [place, live] : corrections.other_roles) {
    LiveModelEntry* const entry = live_.Find(place);
    if (entry == nullptr) continue;
    entry->roles = live.roles;
    AddRoles(place, entry, to);
  }
}

void Recorder::AddRoles(const Place& place, LiveModelEntry* entry, int64_t t_ns) {
  Record record = MakeRecord(place, *entry);
  record.kind = session::Kind::kRole;
  record.size = entry->roles;
  record.stack = record.forward_stack = record.layout = 0;
  format::Event event = translator_.Translate(record);
  event.t_ns = t_ns;
  event.thread = 0;
  event.present &= ~uint64_t{format::kHasThread};
  Write(event, &entry->slot);
}

std::string Recorder::NewSnapshotName(const std::string& wanted) {
  const std::string stem = wanted.empty() ? "snapshot" : wanted;
  std::string name = stem;
  for (int n = 2; !snapshot_names_.insert(name).second; ++n) name = absl::StrCat(stem, "-", n);
  return name;
}

void Recorder::AddMark(uint64_t time_ns, const std::string& name, std::optional<uint64_t> index) {
  format::Event event;
  event.kind = gmt::MARK;
  newest_ns_ = std::max(newest_ns_, time_ns);
  event.t_ns = translator_.Time(newest_ns_);
  event.present = format::kHasTime;
  event.name = writer_->definitions().InternString(name);
  if (index.has_value()) {
    event.index = *index;
    event.present |= format::kHasIndex;
  }
  Write(event);
}

std::string Recorder::AddSnapshot(const std::string& wanted, const std::string& reason,
                                  const Exactness& exactness, const session::RingLosses& losses) {
  const std::string name = NewSnapshotName(wanted);
  format::Event event;
  event.kind = gmt::SNAPSHOT_TAKEN;
  event.t_ns = translator_.Time(newest_ns_);
  event.present = format::kHasTime;
  gmt::SnapshotTaken taken;
  taken.set_name(name);
  taken.set_reason(reason);
  Keep(writer_->Add(event, taken));

  gmt::Snapshot snapshot = MakeSnapshot(exactness, losses);
  snapshot.set_name(name);
  snapshot.set_reason(reason);
  Keep(writer_->Add(snapshot));
  return name;
}

gmt::Snapshot Recorder::MakeSnapshot(const Exactness& exactness,
                                     const session::RingLosses& losses) {
  gmt::Snapshot snapshot;
  snapshot.set_t_ns(translator_.Time(newest_ns_));
  snapshot.set_exact(exactness.inexact_because.empty());
  snapshot.set_inexact_because(exactness.inexact_because);
  *snapshot.mutable_live() = MakeLiveRows(live_, &translator_);
  for (const auto& [place, sample] : samples_) *snapshot.add_samples() = sample;
  std::vector<HeapCounts> heaps = tally_.heaps();
  std::sort(heaps.begin(), heaps.end(),
            [](const HeapCounts& a, const HeapCounts& b) { return a.device < b.device; });
  for (const HeapCounts& heap : heaps) {
    if (heap.reported_reserved == 0 || heap.device == session::kNoDevice) continue;
    gmt::HeapTotal* total = snapshot.add_totals();
    total->set_heap(heap.heap);
    total->set_device(heap.device);
    total->set_allocated_bytes(heap.reported_allocated);
    total->set_reserved_bytes(heap.reported_reserved);
  }
  *snapshot.mutable_losses() = MakeLosses(session_.control(), losses);
  AddInFlight(session_, &translator_, &stacks_, &snapshot);
  return snapshot;
}

void Recorder::AddAggregates() {
  gmt::Aggregates aggregates = MakeAggregates(tally_, translator_, &stacks_);
  aggregates.set_t_ns(translator_.Time(newest_ns_));
  aggregates.set_events(writer_->events_written());
  if (leaks_ != nullptr) *aggregates.mutable_leaks() = leaks_->State();
  Keep(writer_->Add(aggregates));
}

std::unique_ptr<format::Sink> Recorder::BeginPart(std::unique_ptr<format::Sink> sink,
                                                  const gmt::Header& header,
                                                  const gmt::Facts& facts,
                                                  const Exactness& exactness,
                                                  const session::RingLosses& losses) {
  auto ended = writer_->BeginPart(std::move(sink), header);
  Keep(ended.status());
  if (!ended.ok()) return nullptr;
  events_before_part_ = writer_->events_written();
  has_checkpoints_ = false;
  ForgetThreads();
  AddFacts(facts);
  AddAggregates();
  gmt::Snapshot snapshot = MakeSnapshot(exactness, losses);
  snapshot.set_name(NewSnapshotName(absl::StrCat("part-", header.part())));
  snapshot.set_reason("part");
  Keep(writer_->Add(snapshot));
  Flush();
  return *std::move(ended);
}

void Recorder::AddCheckpointIfDue(const Exactness& exactness, const session::RingLosses& losses) {
  if (writer_->WantsCheckpoint(live_.entries().size())) AddCheckpoint(exactness, losses);
}

void Recorder::AddLastCheckpoint(const Exactness& exactness, const session::RingLosses& losses) {
  if (has_checkpoints_) AddCheckpoint(exactness, losses);
}

void Recorder::AddCheckpoint(const Exactness& exactness, const session::RingLosses& losses) {
  has_checkpoints_ = true;
  ForgetThreads();
  gmt::Checkpoint checkpoint;
  *checkpoint.mutable_held() = MakeSnapshot(exactness, losses);
  gmt::Aggregates& so_far = *checkpoint.mutable_so_far();
  so_far = MakeHeapSums(tally_, translator_);
  so_far.set_t_ns(checkpoint.held().t_ns());
  so_far.set_events(writer_->events_written());
  AddSegments(tally_.segments(), &checkpoint);
  Keep(writer_->Add(checkpoint));
  tally_.BeginInterval();
}

void Recorder::AddLosses(const session::RingLosses& losses) {
  Keep(writer_->Add(MakeLosses(session_.control(), losses)));
}

absl::Status Recorder::Finish() {
  Keep(writer_->Finish());
  return status_;
}

gmt::Losses MakeLosses(const session::Control& control, const session::RingLosses& ring) {
  const auto count = [&](session::Counter counter) { return session::CountOf(control, counter); };
  gmt::Losses losses;
  losses.set_written(ring.written);
  losses.set_delivered(ring.delivered);
  losses.set_overrun(ring.overrun);
  losses.set_holes(ring.holes);
  losses.set_abandoned(ring.abandoned);
  losses.set_backlog(ring.backlog);
  losses.set_stacks_full(count(session::kStacksFull));
  losses.set_live_full(count(session::kLiveFull));
  losses.set_before_session(count(session::kBeforeSession));
  losses.set_no_real_function(count(session::kNoRealFunction));
  losses.set_in_flight_full(count(session::kInFlightFull));
  losses.set_modules_full(count(session::kModulesFull));
  losses.set_unrepresentable(count(session::kUnrepresentable));
  losses.set_passed_unhooked(count(session::kPassedUnhooked));
  losses.set_contexts_full(count(session::kContextsFull));
  losses.set_texts_full(count(session::kTextsFull));
  losses.set_codes_full(count(session::kCodesFull));
  losses.set_activities_dropped(count(session::kActivitiesDropped));
  return losses;
}

}  // namespace gmt::collector
