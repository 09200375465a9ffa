#include "analysis/leaks/leak_watcher.h"

#include <algorithm>
#include <utility>

#include "analysis/leaks/leak_cycles.h"
#include "analysis/leaks/leak_walk.h"
#include "analysis/median.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {
namespace {

constexpr size_t kFirstLook = 512;  // entries of the journal
constexpr size_t kMaxPeriods = 2048;
constexpr uint64_t kMinSilence = 1 << 16;  // steps
constexpr double kSilence = 20;            // cycles
constexpr double kMoreTime = 1.25;

bool IsOnDevice(const HeldPiece& piece) {
  return piece.heap == kDriverHeap && piece.device != kHostDevice && piece.memory != MANAGED;
}

}  // namespace

LeakWatcher::LeakWatcher(const format::Definitions& definitions, uint64_t pid, bool attached)
    : definitions_(definitions),
      memory_(definitions, this),
      marked_cycles_(definitions),
      detector_(kMostSites),
      samples_(pid),
      attached_(attached) {}

void LeakWatcher::OnEvent(const format::Event& event) {
  if (!any_event_) first_t_ns_ = cycle_begin_ns_ = begin_ns_ = event.t_ns;
  any_event_ = true;
  now_ns_ = std::max(now_ns_, event.t_ns);
  const uint32_t fired = marked_cycles_.OnEvent(event);
  if (fired != MarkedCycles::kNoMarker) OnFired(fired);
  memory_.OnEvent(event);
  if (journaling_ && journal_.size() >= look_at_) LookForCycles();
  if (event.kind == ALLOC_FAILED && !at_failure_) at_failure_ = Evidence();
}

void LeakWatcher::OnSample(const format::Event& event, const gmt::Sample& sample) {
  now_ns_ = std::max(now_ns_, event.t_ns);
  const auto device = static_cast<int32_t>(sample.has_device() ? sample.device() : event.device);
  DeviceSamples::Used sampled;
  const uint32_t source = samples_.Read(sample, device, &sampled);
  other_.try_emplace(device, sampled.bytes - std::min(sampled.bytes, devices_[device].recorded));
  if (!journaling_) sampled_.clear();
  sampled_.push_back(sampled);
  JournalEntry entry;
  entry.what = Happened::kSampled;
  entry.device = device;
  entry.site = source;
  entry.piece = static_cast<PieceId>(sampled_.size() - 1);
  Happen(entry);
}

// ---- Memory operations

JournalEntry LeakWatcher::EntryOf(Happened what, PieceId id, const HeldPiece& piece) const {
  JournalEntry entry;
  entry.what = what;
  entry.device = piece.device;
  entry.heap = static_cast<uint16_t>(piece.heap);
  entry.on_device = IsOnDevice(piece);
  entry.site = id < sites_.size() ? sites_[id] : 0;
  entry.piece = id;
  entry.size = piece.size;
  return entry;
}

void LeakWatcher::OnBorn(PieceId id, const HeldPiece& piece) {
  if (id >= sites_.size()) {
    sites_.resize(id + size_t{1});
    births_.resize(id + size_t{1});
  }
  if (piece.from_before) {
    HeldBefore& before = BeforeOf(piece.device, piece.heap);
    if (!piece.is_segment) before.bytes += piece.size, ++before.blocks;
    if (IsOnDevice(piece)) reported_bytes_[piece.device] += piece.size;
    JournalEntry entry = EntryOf(Happened::kHeldBefore, id, piece);
    Happen(entry);
    if (!piece.is_segment) return;
    entry.what = Happened::kSegmentBefore;
    return Happen(entry);
  }
  const bool may_mark =
      piece.heap > kHostHeap || (piece.heap == kDriverHeap && !memory_.has_blocks());
  const uint32_t fired = may_mark ? marked_cycles_.OnBirth(piece.stack) : MarkedCycles::kNoMarker;
  if (fired != MarkedCycles::kNoMarker) OnFired(fired);
  SiteKey key;
  key.device = piece.device;
  key.heap = piece.heap;
  key.stack = piece.stack;
  key.forward_stack = piece.forward_stack;
  sites_[id] = detector_.SiteOf(key, piece.size);
  JournalEntry entry = EntryOf(Happened::kBirth, id, piece);
  entry.is_step = true;
  Happen(entry);
  if (!piece.is_segment) return;
  entry.what = Happened::kSegment;
  entry.is_step = false;
  Happen(entry);
}

void LeakWatcher::OnSegment(PieceId id, const HeldPiece& piece) {
  if (piece.from_before) {
    HeldBefore& before = BeforeOf(piece.device, piece.heap);
    before.bytes -= std::min(before.bytes, piece.size);
    before.blocks -= before.blocks > 0 ? 1 : 0;
  }
  Happen(EntryOf(piece.from_before ? Happened::kSegmentBefore : Happened::kSegment, id, piece));
}

void LeakWatcher::OnFreed(PieceId id, const HeldPiece& piece) {
  JournalEntry entry = EntryOf(Happened::kFree, id, piece);
  entry.is_step = !piece.awaits;
  if (piece.is_segment) {
    entry.what = Happened::kSegmentFree;
  } else if (piece.from_before) {
    HeldBefore& before = BeforeOf(piece.device, piece.heap);
    before.freed_bytes += piece.size;
    ++before.freed_blocks;
    entry.what = Happened::kFreeOfBefore;
  } else if (piece.awaits) {
    entry.what = Happened::kFreeOfAwaiting;
  }
  Happen(entry);
}

void LeakWatcher::OnAwaits(PieceId id, const HeldPiece& piece) {
  JournalEntry entry = EntryOf(Happened::kAwaits, id, piece);
  entry.is_step = true;
  Happen(entry);
}

void LeakWatcher::OnFreeOfUnknown(int32_t device, uint32_t heap, uint64_t size) {
  HeldBefore& before = BeforeOf(device, heap);
  before.unknown_freed_bytes += size;
  ++before.unknown_freed_blocks;
  JournalEntry entry;
  entry.what = Happened::kFreeOfUnknown;
  entry.is_step = true;
  entry.device = device;
  entry.heap = static_cast<uint16_t>(heap);
  entry.size = size;
  Happen(entry);
}

HeldBefore& LeakWatcher::BeforeOf(int32_t device, uint32_t heap) {
  const auto [known, is_new] = before_.try_emplace({device, heap});
  if (is_new) {
    known->second.device = device;
    known->second.heap = memory_.heaps()[std::min<size_t>(heap, memory_.heaps().size() - 1)];
  }
  return known->second;
}

// For memory that a device used at first and that was not reported, only the size is known.
std::vector<HeldBefore> LeakWatcher::Before() const {
  std::vector<HeldBefore> all;
  bool any_reported = false;
  for (const auto& [place, before] : before_) any_reported |= before.blocks > 0;
  for (const auto& [place, before] : before_) {
    if (any_reported || attached_) all.push_back(before);
  }
  if (!attached_) return all;
  for (const auto& [device, bytes] : other_) {
    const auto reported = reported_bytes_.find(device);
    HeldBefore other;
    other.device = device;
    other.bytes = bytes - std::min(bytes, reported != reported_bytes_.end() ? reported->second : 0);
    if (other.bytes > 0) all.push_back(other);
  }
  return all;
}

// ---- Counting

void LeakWatcher::OnFired(uint32_t marker) {
  JournalEntry entry;
  entry.what = Happened::kFired;
  entry.site = marker;
  Happen(entry);
  ChooseMarker();
}

void LeakWatcher::Happen(const JournalEntry& entry) {
  JournalEntry timed = entry;
  timed.t_ns = now_ns_;
  if (journaling_) journal_.push_back(timed);
  Count(timed);
  if (!journaling_) WatchForSilence();
}

void LeakWatcher::Count(const JournalEntry& entry) {
  if (entry.what == Happened::kFired) {
    if (entry.site != rule_.marker) return;
    last_firing_ = step_;
    const bool is_end = begun_ || !MarkedCycles::BeginsCycles(rule_.kind);
    if (!begun_ && !is_end) begin_ns_ = cycle_begin_ns_ = entry.t_ns;
    begun_ = true;
    return is_end ? EndCycle(entry.t_ns) : void();
  }
  if (entry.what == Happened::kSampled) {
    return samples_.Count(entry.site, sampled_[entry.piece], devices_[entry.device].recorded,
                          detector_.grid());
  }
  if (rule_.kind == CycleSource::kAnchor && EndsAtAnchor(entry)) EndCycle(entry.t_ns);
  CountMemory(entry);
  if (!entry.is_step) return;
  ++step_;
  if (next_end_ < rule_.ends.size()) {
    if (step_ < rule_.ends[next_end_]) return;
    ++next_end_;
    EndCycle(entry.t_ns);
  } else if (rule_.kind == CycleSource::kEqualParts) {
    if (step_ - last_end_ >= rule_.length) EndCycle(entry.t_ns);
  } else if (rule_.kind == CycleSource::kLowWater) {
    EndWhereLittleIsHeld();
  }
}

// Whether a cycle ends before this birth.
bool LeakWatcher::EndsAtAnchor(const JournalEntry& entry) {
  if (entry.what != Happened::kBirth) return false;
  if (detector_.KeyOf(entry.site).stack != rule_.stack) return false;
  if (entry.heap <= kHostHeap && memory_.has_blocks()) return false;
  const uint64_t firing = step_ + 1, before = std::exchange(last_firing_, firing);
  return !std::exchange(begun_, true) || firing - before > rule_.burst_gap;
}

void LeakWatcher::CountMemory(const JournalEntry& entry) {
  const ChunkGrid& grid = detector_.grid();
  OfDevice& device = devices_[entry.device];
  const uint32_t born = entry.piece < births_.size() ? births_[entry.piece] : 0;
  switch (entry.what) {
    case Happened::kBirth:
      births_[entry.piece] = detector_.cycle();
      detector_.OnBirth(entry.site, entry.size);
      Note(device, entry.size, false);
      break;
    case Happened::kAwaits:
      detector_.OnAwaits(entry.site, entry.size);
      return;
    case Happened::kFreeOfAwaiting:
      detector_.OnAwaited(entry.site, entry.size);
      [[fallthrough]];
    case Happened::kFree:
      detector_.OnFree(entry.site, entry.size, born);
      Note(device, entry.size, true);
      break;
    case Happened::kSegment:
      detector_.TakeBack(entry.site, entry.size, born);
      segments_[entry.device].Birth(grid, entry.size);
      device.held -= std::min(device.held, entry.size);
      return;
    case Happened::kSegmentFree:
      segments_[entry.device].Free(grid, entry.size, 0);
      break;
    case Happened::kHeldBefore:
      detector_.OnHeldBefore(entry.device, entry.size);
      Note(device, entry.size, false);
      break;
    case Happened::kSegmentBefore:
      detector_.TakeBackHeldBefore(entry.device, entry.size);
      segments_[entry.device].Birth(grid, entry.size);
      device.held -= std::min(device.held, entry.size);
      return;
    case Happened::kFreeOfUnknown:
      detector_.OnHeldAllAlong(entry.device, entry.size);
      [[fallthrough]];
    case Happened::kFreeOfBefore:
      detector_.OnFreeOfUnknown(entry.device, entry.heap, entry.size);
      Note(device, entry.size, true);
      break;
    case Happened::kFired:
    case Happened::kSampled:
      return;
  }
  if (!entry.on_device) return;
  const bool is_birth = entry.what == Happened::kBirth || entry.what == Happened::kHeldBefore;
  device.recorded = is_birth ? device.recorded + entry.size
                             : device.recorded - std::min(device.recorded, entry.size);
}

void LeakWatcher::Note(OfDevice& device, uint64_t bytes, bool is_death) {
  device.held = is_death ? device.held - std::min(device.held, bytes) : device.held + bytes;
  device.peak = std::max(device.peak, device.held);
}

void LeakWatcher::EndCycle(int64_t t_ns) {
  begun_ = true;
  ++cycles_.count;
  if (at_failure_ && cycles_.count > at_failure_->cycles.count + 1) at_failure_.reset();
  const int64_t period = t_ns > cycle_begin_ns_ ? t_ns - cycle_begin_ns_ : 0;
  if ((cycles_.count - 1) % period_stride_ == 0) periods_.push_back(period);
  if (periods_.size() >= kMaxPeriods) {
    for (size_t i = 0; 2 * i < periods_.size(); ++i) periods_[i] = periods_[2 * i];
    periods_.resize(periods_.size() / 2);
    period_stride_ *= 2;
  }
  cycle_begin_ns_ = end_ns_ = t_ns;
  last_end_ = step_;
  detector_.OnCycleEnd();
  for (auto& [device, of] : devices_) {
    of.peaks.push_back(of.peak);
    if (of.peaks.size() > kRecentCycles) of.peaks.pop_front();
    of.peak = of.held;
  }
}

void LeakWatcher::EndWhereLittleIsHeld() {
  uint64_t held = 0;
  for (const auto& [device, of] : devices_) held += device == kHostDevice ? 0 : of.held;
  level_.least = std::min(level_.least, held);
  level_.most = std::max(level_.most, held);
  if (++level_.steps >= rule_.length) {
    const auto range = static_cast<double>(level_.most - level_.least);
    level_.low = static_cast<double>(level_.least) + kLowShare * range;
    level_.high = static_cast<double>(level_.least) + kHighShare * range;
    level_.least = UINT64_MAX;
    level_.most = level_.steps = 0;
  }
  const auto now = static_cast<double>(held);
  level_.was_high |= level_.high > 0 && now >= level_.high;
  if (!level_.was_high || now > level_.low) return;
  level_.was_high = false;
  EndCycle(now_ns_);
}

// ---- Sources of cycles

void LeakWatcher::ChooseMarker() {
  const uint32_t best = marked_cycles_.Best();
  if (best == MarkedCycles::kNoMarker || best == rule_.marker) return;
  const MarkedCycles::Marker& of = marked_cycles_.marker(best);
  if (IsMarked()) {
    const MarkedCycles::Marker& now = marked_cycles_.marker(rule_.marker);
    if (of.kind > now.kind) return;
    if (of.kind == now.kind) {
      const bool more =
          of.kind == CycleSource::kNamedRange
              ? static_cast<double>(of.time_ns) > kMoreTime * static_cast<double>(now.time_ns)
              : of.firings > now.firings + 1 || (of.firings == now.firings && of.last > now.last);
      if (!more) return;
    }
  }
  CycleRule rule;
  rule.kind = of.kind;
  rule.marker = best;
  rule.source = of.source;
  Adopt(std::move(rule));
}

void LeakWatcher::LookForCycles() {
  const bool is_full = journal_.size() >= kJournal;
  looked_at_ = journal_.size();
  look_at_ = std::clamp(looked_at_ * 2, kFirstLook, kJournal);
  if (!IsMarked() || !from_beginning_) {
    std::optional<CycleRule> rule =
        InferRule(TraceOfJournal(journal_, memory_, detector_), definitions_);
    const bool is_loop = rule && rule->kind == CycleSource::kAnchor;
    if (rule && (from_beginning_ || is_loop || is_full)) {
      const bool same = is_loop && rule->IsOf(rule_);
      if (!same) Adopt(std::move(*rule));
      if (is_loop && !from_beginning_) journaling_ = false;
    }
  }
  if (is_full) journaling_ = false;
  if (journaling_) return;
  journal_ = {};
  sampled_ = {};
  from_beginning_ = false;
  rule_.ends = {};
  next_end_ = 0;
}

void LeakWatcher::Adopt(CycleRule rule) {
  rule_ = std::move(rule);
  cycles_ = {};
  cycles_.source = rule_.source;
  cycles_.inferred = rule_.kind >= CycleSource::kOptimizerMemory;
  cycles_.clear = rule_.kind != CycleSource::kEqualParts;
  BeginAnew();
  if (from_beginning_) {
    for (const JournalEntry& entry : journal_) Count(entry);
    return;
  }
  begin_ns_ = cycle_begin_ns_ = now_ns_;
  CountHeld();
}

void LeakWatcher::BeginAnew() {
  at_failure_.reset();
  detector_.BeginAnew();
  segments_.clear();
  devices_.clear();
  samples_.BeginAnew();
  periods_.clear();
  period_stride_ = 1;
  begin_ns_ = cycle_begin_ns_ = end_ns_ = first_t_ns_;
  begun_ = false;
  step_ = last_firing_ = last_end_ = next_end_ = 0;
  level_ = {};
}

// Counts what is held for the first cycle.
void LeakWatcher::CountHeld() {
  memory_.ForEach([&](PieceId id, const HeldPiece& piece) {
    JournalEntry entry =
        EntryOf(piece.from_before ? Happened::kHeldBefore : Happened::kBirth, id, piece);
    CountMemory(entry);
    entry.what = piece.from_before ? Happened::kSegmentBefore : Happened::kSegment;
    if (piece.is_segment) CountMemory(entry);
    entry.what = Happened::kAwaits;
    if (piece.awaits && !piece.from_before && !piece.is_segment) CountMemory(entry);
  });
}

// Starts a new journal if the marker of cycles has stopped firing because the program does
// something else.
void LeakWatcher::WatchForSilence() {
  const bool fires = IsMarked() || rule_.kind == CycleSource::kAnchor;
  if (!fires || cycles_.count == 0) return;
  const auto usual = static_cast<double>(step_) / static_cast<double>(cycles_.count);
  const uint64_t silent = step_ - std::min(step_, last_firing_);
  if (silent < kMinSilence || static_cast<double>(silent) < kSilence * usual) return;
  journaling_ = true;
  look_at_ = kFirstLook;
  looked_at_ = 0;
  last_firing_ = step_;
  marked_cycles_.ForgetFirings();
}

// ---- Evidence

LeakEvidence LeakWatcher::Evidence() {
  if (at_failure_) return *at_failure_;
  // A few more cycles may be enough to recognise a loop.
  if (journaling_ && !IsMarked() && from_beginning_ && journal_.size() > looked_at_)
    LookForCycles();
  LeakEvidence evidence;
  evidence.heaps = memory_.heaps();
  evidence.before = Before();
  evidence.cycles = cycles_;
  if (cycles_.count == 0) return evidence;
  evidence.cycles.period_ns = UpperMedian(periods_);
  evidence.watched_ns = std::max<int64_t>(end_ns_ - begin_ns_, 0);
  evidence.minima = MinimaOf(detector_);
  if (cycles_.count < kCyclesForGrowth) return evidence;
  evidence.grown = detector_.Evaluate();
  evidence.loop = detector_.SitesWith(cycles_.count / 2);
  if (evidence.loop.size() > kMaxLoopStacks) evidence.loop.resize(kMaxLoopStacks);
  evidence.untracked = samples_.Grown(detector_.grid());
  evidence.pools = PoolsThatGrew(detector_, segments_);
  for (const auto& [device, room] : samples_.Rooms()) {
    if (device == kHostDevice) continue;
    uint64_t most = 0;
    if (const auto of = devices_.find(device); of != devices_.end()) {
      for (const uint64_t peak : of->second.peaks) most = std::max(most, peak);
    }
    const uint64_t left = room.total - std::min(room.total, room.outside);
    evidence.rooms[device] = left - std::min(left, most);
  }
  return evidence;
}

}  // namespace gmt::analysis
