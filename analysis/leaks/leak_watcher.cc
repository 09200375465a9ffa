#include "analysis/leaks/leak_watcher.h"

#include <algorithm>
#include <utility>

#include "analysis/cycle_anchor.h"
#include "analysis/leaks/leak_cycles.h"

namespace gmt::analysis {
namespace {

constexpr size_t kFirstLook = 512;  // entries of the journal
constexpr double kLookAgain = 1.25;
constexpr size_t kRecentCycles = 10, kMostPeriods = 2048;
constexpr uint64_t kLeastSilence = 1 << 16;  // steps
constexpr double kSilence = 20;              // cycles
constexpr double kMoreTime = 1.25;
constexpr double kLow = 0.05, kHigh = 0.5;  // as in leak_cycles.cc
constexpr uint64_t kStretches = 20;

bool IsOnDevice(const Piece& piece) {
  return piece.heap == kDriverHeap && piece.device != kHostDevice && piece.memory != MANAGED;
}

}  // namespace

LeakWatcher::LeakWatcher(const format::Definitions& definitions, uint64_t pid, bool attached)
    : definitions_(definitions),
      pid_(pid),
      memory_(definitions, this),
      told_(definitions),
      detector_(kMostSites),
      attached_(attached) {}

void LeakWatcher::OnEvent(const format::Event& event) {
  if (!any_event_) first_t_ns_ = cycle_begin_ns_ = begin_ns_ = event.t_ns;
  any_event_ = true;
  now_ns_ = std::max(now_ns_, event.t_ns);
  const uint32_t fired = told_.OnEvent(event);
  if (fired != ToldCycles::kNobody) {
    Entry entry;
    entry.what = Happened::kFired;
    entry.site = fired;
    Happen(entry);
    ChooseTold();
  }
  memory_.OnEvent(event);
  if (journaling_ && journal_.size() >= look_at_) LookForCycles();
}

void LeakWatcher::OnSample(const format::Event& event, const gmt::Sample& sample) {
  now_ns_ = std::max(now_ns_, event.t_ns);
  const auto device = static_cast<int32_t>(sample.has_device() ? sample.device() : event.device);
  const auto same = std::find_if(sources_.begin(), sources_.end(), [&](const Source& of) {
    return of.device == device && of.name == sample.source();
  });
  Source& source = same != sources_.end() ? *same : sources_.emplace_back();
  source.device = device;
  source.name = sample.source();
  source.total = sample.total_bytes();
  Sampled sampled{sample.used_bytes(), sample.used_bytes()};
  source.of_process = false;
  for (const gmt::Sample::ProcessUse& process : sample.processes()) {
    if (process.pid() != pid_ || !process.has_bytes()) continue;
    sampled.bytes = process.bytes();
    source.of_process = true;
  }
  other_.try_emplace(device, sampled.bytes - std::min(sampled.bytes, devices_[device].recorded));
  if (!journaling_) samples_.clear();
  samples_.push_back(sampled);
  Entry entry;
  entry.what = Happened::kSampled;
  entry.device = device;
  entry.site = static_cast<uint32_t>(&source - sources_.data());
  entry.piece = static_cast<PieceId>(samples_.size() - 1);
  Happen(entry);
}

// ---- What memory says

LeakWatcher::Entry LeakWatcher::EntryOf(Happened what, PieceId id, const Piece& piece) const {
  Entry entry;
  entry.what = what;
  entry.device = piece.device;
  entry.heap = static_cast<uint16_t>(piece.heap);
  entry.on_device = IsOnDevice(piece);
  entry.site = id < sites_.size() ? sites_[id] : 0;
  entry.piece = id;
  entry.size = piece.size;
  return entry;
}

void LeakWatcher::OnBorn(PieceId id, const Piece& piece) {
  if (id >= sites_.size()) {
    sites_.resize(id + size_t{1});
    births_.resize(id + size_t{1});
  }
  if (piece.from_before) {
    HeldBefore& before = BeforeOf(piece.device, piece.heap);
    if (!piece.is_segment) before.bytes += piece.size, ++before.blocks;
    if (IsOnDevice(piece)) told_bytes_[piece.device] += piece.size;
    Entry entry = EntryOf(Happened::kHeldBefore, id, piece);
    Happen(entry);
    if (!piece.is_segment) return;
    entry.what = Happened::kSegmentBefore;
    return Happen(entry);
  }
  const bool tells = piece.heap > kHostHeap || (piece.heap == kDriverHeap && !memory_.has_blocks());
  const uint32_t fired = tells ? told_.OnBirth(piece.stack) : ToldCycles::kNobody;
  if (fired != ToldCycles::kNobody) {
    Entry entry;
    entry.what = Happened::kFired;
    entry.site = fired;
    Happen(entry);
    ChooseTold();
  }
  SiteKey key;
  key.device = piece.device;
  key.heap = piece.heap;
  key.stack = piece.stack;
  key.forward_stack = piece.forward_stack;
  sites_[id] = detector_.SiteOf(key, piece.size);
  Entry entry = EntryOf(Happened::kBirth, id, piece);
  entry.is_step = true;
  Happen(entry);
  if (!piece.is_segment) return;
  entry.what = Happened::kSegment;
  entry.is_step = false;
  Happen(entry);
}

void LeakWatcher::OnSegment(PieceId id, const Piece& piece) {
  if (piece.from_before) {
    HeldBefore& before = BeforeOf(piece.device, piece.heap);
    before.bytes -= std::min(before.bytes, piece.size);
    before.blocks -= before.blocks > 0 ? 1 : 0;
  }
  Happen(EntryOf(piece.from_before ? Happened::kSegmentBefore : Happened::kSegment, id, piece));
}

void LeakWatcher::OnFreed(PieceId id, const Piece& piece) {
  Entry entry = EntryOf(Happened::kFree, id, piece);
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

void LeakWatcher::OnAwaits(PieceId id, const Piece& piece) {
  Entry entry = EntryOf(Happened::kAwaits, id, piece);
  entry.is_step = true;
  Happen(entry);
}

void LeakWatcher::OnFreeOfUnknown(int32_t device, uint32_t heap, uint64_t size) {
  HeldBefore& before = BeforeOf(device, heap);
  before.unknown_freed_bytes += size;
  ++before.unknown_freed_blocks;
  Entry entry;
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

// Of what a device used at first and nobody told of, nothing but the size is known.
std::vector<HeldBefore> LeakWatcher::Before() const {
  std::vector<HeldBefore> all;
  bool any_told = false;
  for (const auto& [place, before] : before_) any_told |= before.blocks > 0;
  for (const auto& [place, before] : before_) {
    if (any_told || attached_) all.push_back(before);
  }
  if (!attached_) return all;
  for (const auto& [device, bytes] : other_) {
    const auto told = told_bytes_.find(device);
    HeldBefore other;
    other.device = device;
    other.bytes = bytes - std::min(bytes, told != told_bytes_.end() ? told->second : 0);
    if (other.bytes > 0) all.push_back(other);
  }
  return all;
}

// ---- What is counted

void LeakWatcher::Happen(const Entry& entry) {
  Entry timed = entry;
  timed.t_ns = now_ns_;
  if (journaling_) journal_.push_back(timed);
  Count(timed);
  if (!journaling_) WatchForSilence();
}

void LeakWatcher::Count(const Entry& entry) {
  if (entry.what == Happened::kFired) {
    if (entry.site != rule_.teller) return;
    last_firing_ = step_;
    const bool is_end = begun_ || !ToldCycles::BeginsCycles(rule_.telling);
    if (!begun_ && !is_end) begin_ns_ = cycle_begin_ns_ = entry.t_ns;
    begun_ = true;
    return is_end ? EndCycle(entry.t_ns) : void();
  }
  if (entry.what == Happened::kSampled) return CountSample(entry);
  if (rule_.telling == Telling::kAnchor && EndsAtAnchor(entry)) EndCycle(entry.t_ns);
  CountMemory(entry);
  if (!entry.is_step) return;
  ++step_;
  if (next_end_ < rule_.ends.size()) {
    if (step_ < rule_.ends[next_end_]) return;
    ++next_end_;
    EndCycle(entry.t_ns);
  } else if (rule_.telling == Telling::kEqualParts) {
    if (step_ - last_end_ >= rule_.length) EndCycle(entry.t_ns);
  } else if (rule_.telling == Telling::kLowWater) {
    EndWhereLittleIsHeld();
  }
}

// Whether a cycle ends before this birth.
bool LeakWatcher::EndsAtAnchor(const Entry& entry) {
  if (entry.what != Happened::kBirth) return false;
  if (detector_.KeyOf(entry.site).stack != rule_.stack) return false;
  if (entry.heap <= kHostHeap && memory_.has_blocks()) return false;
  const uint64_t firing = step_ + 1, before = std::exchange(last_firing_, firing);
  return !std::exchange(begun_, true) || firing - before > rule_.burst_gap;
}

void LeakWatcher::CountMemory(const Entry& entry) {
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

void LeakWatcher::CountSample(const Entry& entry) {
  Source& source = sources_[entry.site];
  const Sampled& sampled = samples_[entry.piece];
  const uint64_t recorded = devices_[entry.device].recorded;
  source.outside = sampled.used - std::min(sampled.used, recorded);
  const ChunkGrid& grid = detector_.grid();
  for (; source.level < grid.level(); ++source.level) {
    std::map<uint32_t, double> merged;
    for (const auto& [chunk, least] : source.least) {
      const auto [known, is_new] = merged.try_emplace(chunk / 2, least);
      if (!is_new) known->second = std::min(known->second, least);
    }
    source.least = std::move(merged);
  }
  const double value = static_cast<double>(sampled.bytes) - static_cast<double>(recorded);
  const auto [known, is_new] = source.least.try_emplace(grid.ChunkOf(grid.cycle()), value);
  if (!is_new) known->second = std::min(known->second, value);
}

void LeakWatcher::EndCycle(int64_t t_ns) {
  begun_ = true;
  ++cycles_.count;
  const int64_t period = t_ns > cycle_begin_ns_ ? t_ns - cycle_begin_ns_ : 0;
  if ((cycles_.count - 1) % period_stride_ == 0) periods_.push_back(period);
  if (periods_.size() >= kMostPeriods) {
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
    level_.low = static_cast<double>(level_.least) + kLow * range;
    level_.high = static_cast<double>(level_.least) + kHigh * range;
    level_.least = UINT64_MAX;
    level_.most = level_.steps = 0;
  }
  const auto now = static_cast<double>(held);
  level_.was_high |= level_.high > 0 && now >= level_.high;
  if (!level_.was_high || now > level_.low) return;
  level_.was_high = false;
  EndCycle(now_ns_);
}

// ---- What tells cycles

void LeakWatcher::ChooseTold() {
  const uint32_t best = told_.Best();
  if (best == ToldCycles::kNobody || best == rule_.teller) return;
  const ToldCycles::Teller& of = told_.teller(best);
  if (IsTold()) {
    const ToldCycles::Teller& now = told_.teller(rule_.teller);
    if (of.telling > now.telling) return;
    if (of.telling == now.telling) {
      const bool more =
          of.telling == Telling::kNamedRange
              ? static_cast<double>(of.time_ns) > kMoreTime * static_cast<double>(now.time_ns)
              : of.firings > now.firings + 1 || (of.firings == now.firings && of.last > now.last);
      if (!more) return;
    }
  }
  Rule rule;
  rule.telling = of.telling;
  rule.teller = best;
  rule.source = of.source;
  Adopt(std::move(rule));
}

void LeakWatcher::LookForCycles() {
  const bool is_full = journal_.size() >= kJournal;
  look_at_ = std::min(std::max(look_at_, journal_.size()) * 2, kJournal);
  if (!IsTold() || !from_beginning_) {
    std::optional<Rule> rule = InferRule();
    const bool is_loop = rule && rule->telling == Telling::kAnchor;
    if (rule && (from_beginning_ || is_loop || is_full)) {
      const bool same = is_loop && rule->IsOf(rule_);
      if (!same) Adopt(std::move(*rule));
      if (is_loop && !from_beginning_) journaling_ = false;
    }
  }
  if (is_full) journaling_ = false;
  if (journaling_) return;
  journal_ = {};
  samples_ = {};
  from_beginning_ = false;
  rule_.ends = {};
  next_end_ = 0;
}

std::optional<LeakWatcher::Rule> LeakWatcher::InferRule() const {
  const Trace trace = TraceOfJournal();
  Rule rule;
  InferredCycles anchors = CyclesOfAnchors(trace, definitions_);
  if (anchors.ends.size() >= 2) {
    rule.telling = Telling::kAnchor;
    rule.source = std::move(anchors.source);
    rule.stack = anchors.stack;
    rule.burst_gap = anchors.burst_gap;
    return rule;
  }
  std::vector<Cycle> cycles = LowWaters(trace);
  rule.telling = Telling::kLowWater;
  rule.source = "low-water marks";
  rule.length = std::max<uint64_t>(trace.last_step() / kStretches, 1);
  if (cycles.size() < kLeastLowWaters) {
    cycles = EqualParts(trace);
    if (cycles.empty()) return std::nullopt;
    rule.telling = Telling::kEqualParts;
    rule.source = "equal parts";
    rule.length = cycles.front().end - cycles.front().begin;
  }
  for (const Cycle& cycle : cycles) rule.ends.push_back(cycle.end);
  return rule;
}

// The columns that cycles are found by.
Trace LeakWatcher::TraceOfJournal() const {
  Trace trace;
  trace.heaps = memory_.heaps();
  Rows& rows = trace.rows;
  std::vector<RowId> row_of(memory_.most_pieces(), kNoRow);
  const auto add = [&](const Entry& entry, Step birth, uint32_t stack) {
    const RowId row = rows.count();
    rows.size.push_back(entry.size);
    rows.birth.push_back(birth);
    rows.death.push_back(kNever);
    rows.stack.push_back(stack);
    rows.heap.push_back(entry.heap);
    rows.device.push_back(entry.device);
    rows.memory.push_back(static_cast<uint8_t>(MEMORY_UNSPECIFIED));
    rows.flags.push_back(birth == 0 ? kRowFromBefore : 0);
    if (entry.piece < row_of.size()) row_of[entry.piece] = row;
    return row;
  };
  for (const Entry& entry : journal_) {
    const bool is_held = entry.piece < row_of.size();
    switch (entry.what) {
      case Happened::kBirth:
        trace.steps.push_back({rows.count(), false, entry.t_ns});
        add(entry, trace.last_step(), detector_.KeyOf(entry.site).stack);
        break;
      case Happened::kHeldBefore:
        add(entry, 0, 0);
        break;
      case Happened::kSegment:
      case Happened::kSegmentBefore:
        if (is_held && row_of[entry.piece] != kNoRow)
          rows.flags[row_of[entry.piece]] |= kRowHoldsBlocks;
        break;
      default: {
        if (!entry.is_step) break;
        RowId row = is_held ? std::exchange(row_of[entry.piece], kNoRow) : kNoRow;
        if (row == kNoRow) row = add(entry, 0, 0);
        if (is_held) row_of[entry.piece] = kNoRow;
        if (entry.what == Happened::kSegmentFree) rows.flags[row] |= kRowHoldsBlocks;
        trace.steps.push_back({row, true, entry.t_ns});
        rows.death[row] = trace.last_step();
      }
    }
  }
  return trace;
}

void LeakWatcher::Adopt(Rule rule) {
  rule_ = std::move(rule);
  cycles_ = {};
  cycles_.source = rule_.source;
  cycles_.inferred = rule_.telling >= Telling::kOptimizerMemory;
  cycles_.clear = rule_.telling != Telling::kEqualParts;
  BeginAnew();
  if (from_beginning_) {
    for (const Entry& entry : journal_) Count(entry);
    return;
  }
  begin_ns_ = cycle_begin_ns_ = now_ns_;
  CountHeld();
}

void LeakWatcher::BeginAnew() {
  detector_.BeginAnew();
  segments_.clear();
  devices_.clear();
  for (Source& source : sources_) {
    source.least.clear();
    source.level = 0;
  }
  periods_.clear();
  period_stride_ = 1;
  begin_ns_ = cycle_begin_ns_ = end_ns_ = first_t_ns_;
  begun_ = false;
  step_ = last_firing_ = last_end_ = next_end_ = 0;
  level_ = {};
}

// What is held is of the first cycle.
void LeakWatcher::CountHeld() {
  memory_.ForEach([&](PieceId id, const Piece& piece) {
    Entry entry = EntryOf(piece.from_before ? Happened::kHeldBefore : Happened::kBirth, id, piece);
    CountMemory(entry);
    entry.what = piece.from_before ? Happened::kSegmentBefore : Happened::kSegment;
    if (piece.is_segment) CountMemory(entry);
    entry.what = Happened::kAwaits;
    if (piece.awaits && !piece.from_before && !piece.is_segment) CountMemory(entry);
  });
}

// What told cycles does so no more: the program does something else now.
void LeakWatcher::WatchForSilence() {
  const bool fires = IsTold() || rule_.telling == Telling::kAnchor;
  if (!fires || cycles_.count == 0) return;
  const auto usual = static_cast<double>(step_) / static_cast<double>(cycles_.count);
  const uint64_t silent = step_ - std::min(step_, last_firing_);
  if (silent < kLeastSilence || static_cast<double>(silent) < kSilence * usual) return;
  journaling_ = true;
  look_at_ = kFirstLook;
  last_firing_ = step_;
  told_.ForgetFirings();
}

// ---- Evidence

int64_t LeakWatcher::MedianPeriod() const {
  std::vector<int64_t> periods = periods_;
  if (periods.empty()) return 0;
  const auto middle = periods.begin() + static_cast<std::ptrdiff_t>(periods.size() / 2);
  std::nth_element(periods.begin(), middle, periods.end());
  return *middle;
}

std::vector<UntrackedGrowth> LeakWatcher::Untracked() const {
  std::vector<UntrackedGrowth> all;
  const ChunkGrid& grid = detector_.grid();
  const uint64_t cycles = uint64_t{grid.complete()} << grid.level();
  if (cycles == 0) return all;
  for (const Source& source : sources_) {
    UntrackedParts parts;
    for (const auto& [chunk, least] : source.least) {
      const uint64_t cycle = uint64_t{chunk} << source.level;
      if (cycle >= cycles) break;
      const auto [known, is_new] = parts.try_emplace(cycle * kUntrackedParts / cycles, least);
      if (!is_new) known->second = std::min(known->second, least);
    }
    std::optional<UntrackedGrowth> growth = UntrackedGrowthOf(parts, cycles);
    if (!growth) continue;
    growth->device = source.device;
    growth->source = source.name;
    growth->of_process = source.of_process;
    all.push_back(std::move(*growth));
  }
  std::sort(all.begin(), all.end(), [](const UntrackedGrowth& a, const UntrackedGrowth& b) {
    return std::pair(a.device, a.source) < std::pair(b.device, b.source);
  });
  return all;
}

LeakEvidence LeakWatcher::Evidence() {
  const bool grown =
      static_cast<double>(journal_.size()) * 2 >= kLookAgain * static_cast<double>(look_at_);
  if (journaling_ && !IsTold() && from_beginning_ && (grown || look_at_ == kFirstLook))
    LookForCycles();
  LeakEvidence evidence;
  evidence.heaps = memory_.heaps();
  evidence.before = Before();
  evidence.cycles = cycles_;
  if (cycles_.count == 0) return evidence;
  evidence.cycles.period_ns = MedianPeriod();
  evidence.watched_ns = std::max<int64_t>(end_ns_ - begin_ns_, 0);
  evidence.minima = MinimaOf(detector_);
  if (cycles_.count < kCyclesForLikely) return evidence;
  evidence.grown = detector_.Evaluate();
  evidence.loop = detector_.SitesWith(cycles_.count / 2);
  if (evidence.loop.size() > kMostLoopStacks) evidence.loop.resize(kMostLoopStacks);
  evidence.untracked = Untracked();
  evidence.pools = PoolsThatGrew(detector_, segments_);
  std::map<int32_t, const Source*> last;
  for (const Source& source : sources_) {
    const Source*& of = last[source.device];
    if (source.total > 0 && (of == nullptr || of->name < source.name)) of = &source;
  }
  for (const auto& [device, source] : last) {
    if (source == nullptr || device == kHostDevice) continue;
    uint64_t most = 0;
    if (const auto of = devices_.find(device); of != devices_.end()) {
      for (const uint64_t peak : of->second.peaks) most = std::max(most, peak);
    }
    const uint64_t taken = std::min(source->total, source->outside);
    evidence.rooms[device] = source->total - taken - std::min(source->total - taken, most);
  }
  return evidence;
}

}  // namespace gmt::analysis
