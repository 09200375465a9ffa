#include "interop/torch/torch_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gmt::interop {
namespace {

using analysis::kDriverHeap;
using analysis::kNoRow;
using analysis::Mapping;
using analysis::RowId;
using analysis::Rows;
using analysis::SideEvent;

// PyTorch keeps small requests in segments of this size. Expandable segments grow by kSmallSegment,
// or by kLargePage for larger requests.
constexpr uint64_t kSmallSegment = 2 << 20;
constexpr uint64_t kLargePage = 20 << 20;

// Arrays are shown at addresses from here on, which are above those of any GPU, and exact in
// floating point.
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
bool TorchModel::IsPhysical(RowId row) const {
  return trace_.rows.heap[row] == kDriverHeap && trace_.rows.memory[row] == VMM &&
         (trace_.rows.flags[row] & analysis::kRowHandle) != 0;
}

// ---- Items --------------------------------------------------------------------------------------

void TorchModel::Begin() {
  silent_ = true;
  const auto from_before = [&](RowId row) { return trace_.rows.birth[row] == 0 && IsHere(row); };
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    if (from_before(row) && !trace_.rows.IsBlock(row)) OnBirth(row);
  }
  for (uint32_t i = 0; i < trace_.mappings.size(); ++i) {
    const Mapping& mapping = trace_.mappings[i];
    if (IsFromBefore(mapping) && IsHere(mapping.physical)) OnMapping(i, true);
  }
  FlushRun();
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    if (from_before(row) && trace_.rows.IsBlock(row)) OnBirth(row);
  }
  silent_ = false;
}

void TorchModel::Take(const TorchItem& item) {
  if (item.kind == TorchItem::kSideEvent) return TakeSideEvent(item);
  if (!IsHere(item.index) || IsPhysical(item.index)) return;
  FlushRun();
  now_ = item.t_ns;
  Boundary();
  item.kind == TorchItem::kBirth ? OnBirth(item.index) : OnDeath(item.index);
}

void TorchModel::TakeSideEvent(const TorchItem& item) {
  switch (item.side_event) {
    case SideEvent::kMap:
    case SideEvent::kUnmap: {
      const RowId row = trace_.mappings[item.index].physical;
      if (row == kNoRow || !IsHere(row)) return;
      const bool maps = item.side_event == SideEvent::kMap;
      if (maps && IsFromBefore(trace_.mappings[item.index])) return;  // Begin() has added it
      now_ = item.t_ns;
      return OnMapping(item.index, maps);
    }
    case SideEvent::kCompleted: {
      const analysis::Completion& completion = trace_.completions[item.index];
      if (!IsHere(completion.row)) return;
      FlushRun();
      now_ = item.t_ns;
      Boundary();
      return OnCompleted(completion);
    }
    case SideEvent::kFailed:
      if (trace_.failed[item.index].device != device_) return;
      break;
    case SideEvent::kAction:
      if (!IsImportedSnapshot(trace_) || trace_.actions[item.index].device != device_) return;
      break;
    case SideEvent::kSnapshot:
      break;
    case SideEvent::kSample:
    case SideEvent::kMark:
    case SideEvent::kRangeBegin:
    case SideEvent::kRangeEnd:
      return;
  }
  FlushRun();
  now_ = item.t_ns;
  Boundary();
  if (item.side_event == SideEvent::kFailed) return OnFailed(item.index);
  item.side_event == SideEvent::kAction ? OnAction(item.index) : OnSnapshot(item.index);
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
  } else if (trace_.rows.IsBlock(row)) {
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
  if (trace_.rows.IsBlock(row)) {
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
  Emit({TorchEvent::kOutOfMemory, failed.driver_free.value_or(0), failed.size, failed.stream, now_,
        kNoRow, index, failed.stack});
}

void TorchModel::OnSnapshot(uint32_t index) {
  Emit({TorchEvent::kSnapshot, 0, block_bytes_, 0, now_, kNoRow, index, 0});
}

void TorchModel::OnAction(uint32_t index) {
  const analysis::RecordedAction& action = trace_.actions[index];
  Emit({TorchEvent::kOther, action.object, action.value, action.stream, now_, kNoRow, index,
        action.stack});
}

void TorchModel::Emit(TorchEvent::Action action, uint64_t address, uint64_t size, uint64_t stream,
                      RowId row, uint32_t stack) {
  Emit({action, address, size, stream, now_, row, 0, stack});
}

void TorchModel::Emit(const TorchEvent& event) {
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

// A stream-ordered pool of the driver is not a pool of PyTorch.
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

}  // namespace gmt::interop
