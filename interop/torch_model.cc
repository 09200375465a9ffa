#include "interop/torch_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gmt::interop {
namespace {

using analysis::Aside;
using analysis::kDriverHeap;
using analysis::kHostHeap;
using analysis::kNoRow;
using analysis::Mapping;
using analysis::RowId;
using analysis::Rows;

// PyTorch keeps requests of up to this size (rounded) in segments of their own.
constexpr uint64_t kSmallRequest = 1 << 20;
constexpr uint64_t kSmallSegment = 2 << 20;
// ... which it maps by so much where segments are expandable; larger requests by this.
constexpr uint64_t kLargePage = 20 << 20;

// Arrays are shown from here on: above what any GPU has addresses for, and exact in floating point.
constexpr uint64_t kMovedFrom = uint64_t{1} << 52;
constexpr uint64_t kAddressLimit = uint64_t{1} << 62;
constexpr uint64_t kMovedLimit = uint64_t{1} << 53;

bool IsExact(uint64_t value) {
  return value < kAddressLimit && static_cast<uint64_t>(static_cast<double>(value)) == value;
}
bool IsExactRange(uint64_t address, uint64_t size) {
  return size > 0 && IsExact(address) && IsExact(size) && IsExact(address + size);
}

}  // namespace

TorchModel::TorchModel(const analysis::Trace& trace, int32_t device, Mode mode,
                       TorchSegmentFacts& facts, TorchSink& sink)
    : trace_(trace),
      device_(device),
      mode_(mode),
      facts_(facts),
      sink_(sink),
      next_moved_(kMovedFrom) {}

bool TorchModel::IsHere(RowId row) const {
  return trace_.rows.device[row] == device_ && trace_.rows.size[row] > 0;
}
bool TorchModel::HoldsBlocks(RowId row) const {
  return (trace_.rows.flags[row] & analysis::kRowHoldsBlocks) != 0;
}
bool TorchModel::IsBlock(RowId row) const { return trace_.rows.heap[row] > kHostHeap; }
bool TorchModel::IsPhysical(RowId row) const {
  return trace_.rows.heap[row] == kDriverHeap && trace_.rows.memory[row] == VMM &&
         (trace_.rows.flags[row] & analysis::kRowHandle) != 0;
}

// ---- What happens -------------------------------------------------------------------------------

void TorchModel::Begin() {
  silent_ = true;
  const auto from_before = [&](RowId row) { return trace_.rows.birth[row] == 0 && IsHere(row); };
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    if (from_before(row) && !IsBlock(row)) OnBirth(row);
  }
  for (uint32_t i = 0; i < trace_.mappings.size(); ++i) {
    const Mapping& mapping = trace_.mappings[i];
    if (IsFromBefore(mapping) && IsHere(mapping.physical)) OnMapping(i, true);
  }
  FlushRun();
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    if (from_before(row) && IsBlock(row)) OnBirth(row);
  }
  silent_ = false;
}

void TorchModel::Take(const TorchItem& item) {
  if (item.kind == TorchItem::kAside) return TakeAside(item);
  if (!IsHere(item.index) || IsPhysical(item.index)) return;
  FlushRun();
  now_ = item.t_ns;
  Boundary();
  item.kind == TorchItem::kBirth ? OnBirth(item.index) : OnDeath(item.index);
}

void TorchModel::TakeAside(const TorchItem& item) {
  switch (item.aside) {
    case Aside::kMap:
    case Aside::kUnmap: {
      const RowId row = trace_.mappings[item.index].physical;
      if (row == kNoRow || !IsHere(row)) return;
      const bool maps = item.aside == Aside::kMap;
      if (maps && IsFromBefore(trace_.mappings[item.index])) return;  // Begin() has had it
      now_ = item.t_ns;
      return OnMapping(item.index, maps);
    }
    case Aside::kCompleted: {
      const analysis::Completion& completion = trace_.completions[item.index];
      if (!IsHere(completion.row)) return;
      FlushRun();
      now_ = item.t_ns;
      Boundary();
      return OnCompleted(completion);
    }
    case Aside::kFailed:
      if (trace_.failed[item.index].device != device_) return;
      break;
    case Aside::kAction:
      if (!IsImportedSnapshot(trace_) || trace_.actions[item.index].device != device_) return;
      break;
    case Aside::kSnapshot:
      break;
    case Aside::kSample:
    case Aside::kMark:
    case Aside::kRangeBegin:
    case Aside::kRangeEnd:
      return;
  }
  FlushRun();
  now_ = item.t_ns;
  Boundary();
  if (item.aside == Aside::kFailed) return OnFailed(item.index);
  item.aside == Aside::kAction ? OnAction(item.index) : OnSnapshot(item.index);
}

bool TorchModel::IsFromBefore(const Mapping& mapping) const {
  return mapping.birth == 0 && mapping.physical != kNoRow &&
         trace_.rows.birth[mapping.physical] == 0;
}

std::optional<uint64_t> TorchModel::PlaceOf(RowId row) {
  const Rows& rows = trace_.rows;
  const uint64_t size = rows.size[row];
  if ((rows.flags[row] & analysis::kRowHandle) == 0) {
    if (IsExactRange(rows.address[row], size)) return rows.address[row];
    return std::nullopt;
  }
  if (const auto known = moved_.find(row); known != moved_.end()) return known->second;
  if (size > kMovedLimit - next_moved_) return std::nullopt;
  moved_[row] = next_moved_;
  ++counts_.moved;
  return std::exchange(next_moved_, next_moved_ + size);
}

void TorchModel::OnBirth(RowId row) {
  if (IsPhysical(row)) return;
  const std::optional<uint64_t> address = PlaceOf(row);
  if (!address) {
    ++counts_.left_out;
  } else if (IsBlock(row)) {
    BeginBlock(*address, trace_.rows.size[row], row);
  } else if (HoldsBlocks(row)) {
    BeginSegment(*address, trace_.rows.size[row], row, false);
  } else {
    BeginRaw(*address, trace_.rows.size[row], row);
  }
}

void TorchModel::OnDeath(RowId row) {
  const std::optional<uint64_t> address = PlaceOf(row);
  if (!address) return;
  moved_.erase(row);
  if (IsBlock(row)) {
    const auto block = blocks_.find(*address);
    const bool awaited = (trace_.rows.flags[row] & analysis::kRowAwaited) != 0;
    if (block != blocks_.end() && block->second.row == row) EndBlock(block, awaited);
  } else {
    EndRaw(*address, row);
  }
}

void TorchModel::OnCompleted(const analysis::Completion& completion) {
  const RowId row = completion.row;
  const auto block = blocks_.find(trace_.rows.address[row]);
  if (block != blocks_.end() && block->second.row == row && block->second.pending) {
    Complete(block, completion.stack);
  }
}

void TorchModel::OnMapping(uint32_t index, bool maps) {
  const Mapping& mapping = trace_.mappings[index];
  const RowId row = mapping.physical;
  if (!IsExactRange(mapping.address, mapping.size)) {
    counts_.left_out += maps ? 1 : 0;
    return;
  }
  if (!HoldsBlocks(row)) {
    FlushRun();
    Boundary();
    return maps ? BeginRaw(mapping.address, mapping.size, row) : EndRaw(mapping.address, row);
  }
  if (run_.open && run_.maps == maps && run_.end == mapping.address) {
    run_.end += mapping.size;
    return;
  }
  FlushRun();
  run_ = {true, maps, mapping.address, mapping.address + mapping.size, index, now_};
}

void TorchModel::OnFailed(uint32_t index) {
  if (ignored_failures_ != nullptr && (*ignored_failures_)[index]) {
    ++counts_.tries;
    return;
  }
  const analysis::FailedAllocation& failed = trace_.failed[index];
  Tell({TorchEvent::kOutOfMemory, failed.driver_free.value_or(0), failed.size, failed.stream, now_,
        kNoRow, index, failed.stack});
}

void TorchModel::OnSnapshot(uint32_t index) {
  Tell({TorchEvent::kSnapshot, 0, block_bytes_, 0, now_, kNoRow, index, 0});
}

void TorchModel::OnAction(uint32_t index) {
  const analysis::ToldAction& action = trace_.actions[index];
  Tell({TorchEvent::kOther, action.object, action.value, action.stream, now_, kNoRow, index,
        action.stack});
}

// ---- Driver memory ------------------------------------------------------------------------------

void TorchModel::BeginRaw(uint64_t address, uint64_t size, RowId row) {
  BeginSegment(address, size, row, false);
  BeginBlock(address, size, row);
}

void TorchModel::EndRaw(uint64_t address, RowId row) {
  const auto segment = segments_.find(address);
  if (segment == segments_.end() || segment->second.row != row) return;
  if (!HoldsBlocks(row)) {
    const auto block = blocks_.find(address);
    if (block != blocks_.end() && block->second.row == row) EndBlock(block, false);
  }
  EndSegment(segment, 0);
}

void TorchModel::BeginSegment(uint64_t address, uint64_t size, RowId row, bool assumed) {
  const auto displaced = ClearSegments(address, address + size);
  Segment segment{size, 0, false, assumed, row, trace_.rows.stack[row], TorchSegmentFacts::kNone};
  if (HoldsBlocks(row)) segment.facts = facts_.IdOf(TorchSegmentFacts::OfRow(row));
  if ((trace_.rows.flags[row] & analysis::kRowHasStream) != 0) {
    segment.stream = trace_.rows.stream[row];
  } else {
    segment.stream = facts_.Of(segment.facts).stream;
  }
  Tell(TorchEvent::kSegmentAlloc, address, size, segment.stream, row, segment.stack);
  segments_[address] = segment;
  PutBack(displaced);
}

void TorchModel::EndSegment(Segments_::iterator segment, uint32_t stack) {
  const uint64_t address = segment->first;
  const Segment ended = segment->second;
  segments_.erase(segment);
  EndBlocks(address, address + ended.size);
  Tell(TorchEvent::kSegmentFree, address, ended.size, ended.stream, ended.row, stack);
}

void TorchModel::FlushRun() {
  if (!run_.open) return;
  const Run run = std::exchange(run_, Run());
  const int64_t now = std::exchange(now_, run.t_ns);
  Boundary();
  run.maps ? Map(run) : Unmap(run);
  now_ = now;
}

void TorchModel::Map(const Run& run) {
  const auto displaced = ClearSegments(run.address, run.end);
  const Mapping& mapping = trace_.mappings[run.mapping];
  const RowId row = mapping.physical;
  Segment segment{run.end - run.address,
                  0,
                  true,
                  false,
                  row,
                  mapping.stack != 0 ? mapping.stack : trace_.rows.stack[row],
                  facts_.IdOf(TorchSegmentFacts::OfMapping(run.mapping))};
  segment.stream = mapping.has_stream ? mapping.stream : facts_.Of(segment.facts).stream;
  Tell(TorchEvent::kSegmentMap, run.address, segment.size, segment.stream, row, segment.stack);
  Insert(run.address, segment);
  PutBack(displaced);
}

// M4
void TorchModel::Insert(uint64_t address, Segment segment) {
  const auto joins = [&](const Segment& other) {
    return other.expandable && other.stream == segment.stream;
  };
  if (const auto next = segments_.find(address + segment.size);
      next != segments_.end() && joins(next->second)) {
    if (mode_ == Mode::kLearn) facts_.Join(next->second.facts, segment.facts);
    segment.size += next->second.size;
    segments_.erase(next);
  }
  const auto after = segments_.lower_bound(address);
  if (after != segments_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second.size == address && joins(before->second)) {
      if (mode_ == Mode::kLearn) facts_.Join(before->second.facts, segment.facts);
      before->second.size += segment.size;
      return;
    }
  }
  segments_[address] = segment;
}

void TorchModel::Unmap(const Run& run) {
  for (uint64_t at = run.address; at < run.end;) {
    auto found = segments_.upper_bound(at);
    if (found != segments_.begin() &&
        std::prev(found)->first + std::prev(found)->second.size > at) {
      --found;
    }
    if (found == segments_.end() || found->first >= run.end) return;
    const uint64_t start = found->first;
    const Segment segment = found->second;
    const uint64_t from = std::max(start, at), end = start + segment.size;
    const uint64_t to = std::min(end, run.end);
    at = to;
    if (!segment.expandable) continue;
    EndBlocks(from, to);
    segments_.erase(start);
    const auto keep = [&](uint64_t piece, uint64_t piece_end) {
      if (piece >= piece_end) return;
      segments_[piece] = segment;
      segments_[piece].size = piece_end - piece;
    };
    keep(start, from);
    keep(to, end);
    Tell(TorchEvent::kSegmentUnmap, from, to - from, segment.stream, segment.row,
         trace_.mappings[run.mapping].unmap_stack);
  }
}

std::vector<std::pair<uint64_t, TorchModel::Block>> TorchModel::ClearSegments(uint64_t address,
                                                                              uint64_t end) {
  std::vector<std::pair<uint64_t, Block>> displaced;
  auto segment = segments_.upper_bound(address);
  if (segment != segments_.begin()) --segment;
  while (segment != segments_.end() && segment->first < end) {
    if (segment->first + segment->second.size <= address) {
      ++segment;
      continue;
    }
    const uint64_t start = segment->first;
    if (segment->second.assumed) {
      const auto block = blocks_.find(start);
      if (block != blocks_.end() && !block->second.pending) displaced.push_back(*block);
    } else {
      ++counts_.made_up;
    }
    EndSegment(segment, 0);
    segment = segments_.lower_bound(start);
  }
  return displaced;
}

void TorchModel::PutBack(const std::vector<std::pair<uint64_t, Block>>& blocks) {
  for (const auto& [address, block] : blocks) BeginBlock(address, block.size, block.row);
}

TorchModel::Segments_::iterator TorchModel::SegmentOf(uint64_t address, uint64_t end) {
  const auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return segments_.end();
  const auto segment = std::prev(after);
  return end <= segment->first + segment->second.size ? segment : segments_.end();
}

bool TorchModel::Overlaps(uint64_t address, uint64_t end) {
  auto segment = segments_.upper_bound(address);
  if (segment != segments_.begin() &&
      std::prev(segment)->first + std::prev(segment)->second.size > address) {
    return true;
  }
  return segment != segments_.end() && segment->first < end;
}

// ---- Blocks -------------------------------------------------------------------------------------

void TorchModel::BeginBlock(uint64_t address, uint64_t size, RowId row) {
  if (!ClearBlocks(address, address + size, row)) {
    ++counts_.left_out;
    return;
  }
  auto segment = SegmentOf(address, address + size);
  if (segment == segments_.end() && Overlaps(address, address + size)) {
    ++counts_.left_out;  // reaches beyond its segment
    return;
  }
  if (segment == segments_.end()) {
    BeginSegment(address, size, row, true);
    segment = segments_.find(address);
  }
  const Rows& rows = trace_.rows;
  const bool has_stream = (rows.flags[row] & analysis::kRowHasStream) != 0;
  const uint64_t stream = has_stream ? rows.stream[row] : segment->second.stream;
  if (mode_ == Mode::kLearn) {
    facts_.Learn(segment->second.facts,
                 {stream, rows.Pool(row).value_or(0), size <= kSmallRequest, true});
  }
  blocks_[address] = {size, stream, row, false};
  block_bytes_ += size;
  Tell(TorchEvent::kAlloc, address, size, stream, row, rows.stack[row]);
}

void TorchModel::EndBlock(Blocks::iterator block, bool awaited) {
  const auto [address, ended] = *block;
  if (!ended.pending) {
    Tell(TorchEvent::kFreeRequested, address, ended.size, ended.stream, ended.row, 0);
    block->second.pending = true;
  }
  if (!awaited) Complete(block);
}

void TorchModel::Complete(Blocks::iterator block, uint32_t stack) {
  const auto [address, ended] = *block;
  block_bytes_ -= ended.size;
  blocks_.erase(block);
  Tell(TorchEvent::kFreeCompleted, address, ended.size, ended.stream, ended.row, stack);
  const auto segment = segments_.find(address);
  if (segment != segments_.end() && segment->second.assumed && segment->second.row == ended.row) {
    EndSegment(segment, 0);
  }
}

// Makes room for a new block. False where the new one lies in a block of another heap.
bool TorchModel::ClearBlocks(uint64_t address, uint64_t end, RowId for_row) {
  auto block = blocks_.upper_bound(address);
  if (block != blocks_.begin()) --block;
  std::vector<uint64_t> in_the_way;
  for (; block != blocks_.end() && block->first < end; ++block) {
    if (block->first + block->second.size <= address) continue;
    const bool same_heap = trace_.rows.heap[block->second.row] == trace_.rows.heap[for_row];
    if (!same_heap && !block->second.pending) return false;
    in_the_way.push_back(block->first);
  }
  for (uint64_t at : in_the_way) {
    const auto old = blocks_.find(at);
    if (old == blocks_.end()) continue;
    // A place that is given out again was free, though nobody saw the wait for it end.
    if (!old->second.pending) ++counts_.made_up;
    EndBlock(old, false);
  }
  return true;
}

void TorchModel::EndBlocks(uint64_t address, uint64_t end) {
  for (auto block = blocks_.upper_bound(address);;) {
    if (block != blocks_.begin()) {
      const auto before = std::prev(block);
      if (before->first + before->second.size > address) block = before;
    }
    if (block == blocks_.end() || block->first >= end) return;
    if (!block->second.pending) ++counts_.made_up;
    const uint64_t at = block->first;
    EndBlock(block, false);
    block = blocks_.upper_bound(at);
  }
}

void TorchModel::Tell(TorchEvent::Action action, uint64_t address, uint64_t size, uint64_t stream,
                      RowId row, uint32_t stack) {
  Tell({action, address, size, stream, now_, row, 0, stack});
}

void TorchModel::Tell(const TorchEvent& event) {
  if (!silent_) sink_.OnEvent(event);
}

void TorchModel::Boundary() {
  if (!silent_) sink_.OnBoundary(now_);
}

bool TorchModel::IsSmall(const Segment& segment) const {
  const TorchSegmentFacts::Facts& facts = facts_.Of(segment.facts);
  if (!segment.expandable && segment.size > kSmallSegment) return false;
  if (facts.learnt) return facts.small;
  return !segment.expandable || segment.size % kLargePage != 0;
}

// A stream-ordered pool of the driver is none of PyTorch's.
uint64_t TorchModel::PoolOf(const Segment& segment) const {
  if (!HoldsBlocks(segment.row)) return 0;
  return trace_.rows.Pool(segment.row).value_or(facts_.Of(segment.facts).pool);
}

// ---- State --------------------------------------------------------------------------------------

std::vector<TorchSegment> TorchModel::Segments() const {
  std::vector<TorchSegment> result;
  result.reserve(segments_.size());
  auto block = blocks_.begin();
  for (const auto& [address, segment] : segments_) {
    TorchSegment out{address,         segment.size,     segment.stream,
                     PoolOf(segment), IsSmall(segment), segment.expandable,
                     segment.row,     segment.stack,    {}};
    uint64_t reached = address;
    const uint64_t end = address + segment.size;
    for (; block != blocks_.end() && block->first < end; ++block) {
      const auto& [at, held] = *block;
      if (at > reached) out.blocks.push_back({reached, at - reached});
      out.blocks.push_back({at, held.size, held.row, held.pending});
      reached = at + held.size;
    }
    if (reached < end) out.blocks.push_back({reached, end - reached});
    result.push_back(std::move(out));
  }
  return result;
}

// ---- Facts --------------------------------------------------------------------------------------

TorchSegmentFacts::Id TorchSegmentFacts::IdOf(uint64_t name) {
  const auto [it, is_new] = ids_.try_emplace(name, static_cast<Id>(facts_.size()));
  if (is_new) {
    facts_.emplace_back();
    parent_.push_back(it->second);
  }
  return it->second;
}

const TorchSegmentFacts::Facts& TorchSegmentFacts::Of(Id id) const {
  static constexpr Facts kNothing;
  return id == kNone ? kNothing : facts_[Root(id)];
}

TorchSegmentFacts::Id TorchSegmentFacts::Root(Id id) const {
  while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
  return id;
}

void TorchSegmentFacts::Join(Id a, Id b) {
  const Id root = Root(a), other = Root(b);
  if (root == other) return;
  if (!facts_[root].learnt) facts_[root] = facts_[other];
  parent_[other] = root;
}

void TorchSegmentFacts::Learn(Id id, const Facts& facts) {
  if (id == kNone) return;
  Facts& known = facts_[Root(id)];
  if (!known.learnt) known = facts;
}

}  // namespace gmt::interop
