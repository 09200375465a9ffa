#include "interop/torch_import/torch_import_begin.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace gmt::interop {
namespace {

using Action = SnapshotEvent::Action;

constexpr uint64_t kMinBlockSize = 512;

// The ranges that are mapped while events are undone, by address. They do not overlap.
class Ranges {
 public:
  void Add(const MappedRange& range) { ranges_[range.address] = range; }

  struct Removed {
    std::optional<MappedRange> range;  // one of the ranges there, if any
    uint64_t size = 0;                 // of all ranges there
  };
  // Removes [address, end).
  Removed Remove(uint64_t address, uint64_t end) {
    Removed removed;
    auto it = ranges_.upper_bound(address);
    if (it != ranges_.begin()) --it;
    while (it != ranges_.end() && it->first < end) {
      const MappedRange range = it->second;
      const uint64_t range_end = range.address + range.size;
      if (range_end <= address) {
        ++it;
        continue;
      }
      removed.range = range;
      removed.size += std::min(range_end, end) - std::max(range.address, address);
      it = ranges_.erase(it);
      if (range.address < address) Keep(range, range.address, address);
      if (range_end > end) Keep(range, end, range_end);
    }
    return removed;
  }

  std::vector<MappedRange> All() const {
    std::vector<MappedRange> all;
    for (const auto& [address, range] : ranges_) all.push_back(range);
    return all;
  }

 private:
  void Keep(MappedRange range, uint64_t from, uint64_t to) {
    range.address = from;
    range.size = to - from;
    ranges_[from] = range;
  }

  std::map<uint64_t, MappedRange> ranges_;
};

class Undo {
 public:
  Undo(const SnapshotView& view, uint32_t device) : view_(view), device_(device) {}

  absl::StatusOr<DeviceBegin> Run(const std::vector<SnapshotSegment>& segments) {
    for (const SnapshotSegment& segment : segments) {
      if (segment.device == device_) TakeFinal(segment);
    }
    if (device_ < view_.device_count()) {
      SnapshotEvent event;
      for (uint32_t i = view_.event_count(device_); i-- > 0;) {
        absl::Status status = view_.Event(device_, i, &event);
        if (!status.ok()) return status;
        if (event.time_us.has_value())
          begin_.first_us = std::min(*event.time_us, begin_.first_us.value_or(*event.time_us));
        UndoEvent(i, event);
      }
    }
    Gather();
    return std::move(begin_);
  }

 private:
  struct Held {
    SnapshotBlock block;
    std::optional<uint64_t> stream;
    bool is_final = false;
  };
  struct HeldSegment {
    SnapshotSegment segment;
    bool is_final = false;
  };

  void TakeFinal(const SnapshotSegment& segment) {
    for (const SnapshotBlock& block : segment.blocks)
      blocks_[block.address] = {block, segment.stream, true};
    if (segment.expandable) {
      mapped_.Add({segment.address, segment.size, segment.stream, segment.pool, segment.small,
                   segment.frames});
      Reserve(segment.address, segment.address + segment.size);
      return;
    }
    HeldSegment& held = segments_[segment.address];
    held.segment = segment;
    held.segment.blocks.clear();
    held.is_final = true;
  }

  void UndoEvent(uint32_t index, const SnapshotEvent& event) {
    const uint64_t end = event.address + event.size;
    switch (event.action) {
      case Action::kAlloc:
        return UndoAlloc(index, event);
      case Action::kFreeRequested:
      case Action::kFreeCompleted:
        return UndoFree(event);
      case Action::kSegmentAlloc: {
        const auto held = segments_.find(event.address);
        if (held == segments_.end()) {
          ++begin_.contradictions;
          return;
        }
        if (held->second.is_final) begin_.pools[index] = held->second.segment.pool;
        segments_.erase(held);
        return;
      }
      case Action::kSegmentFree: {
        HeldSegment held;
        held.segment.device = device_;
        held.segment.address = event.address;
        held.segment.size = event.size;
        held.segment.stream = event.stream;
        held.segment.pool = event.pool.value_or(0);
        if (!segments_.insert_or_assign(event.address, held).second) ++begin_.contradictions;
        return;
      }
      case Action::kSegmentMap:
        return UndoMap(index, event.address, end);
      case Action::kSegmentUnmap:
        return UndoUnmap(event);
      default:
        return;
    }
  }

  void UndoAlloc(uint32_t index, const SnapshotEvent& event) {
    const auto held = blocks_.find(event.address);
    if (held == blocks_.end()) {
      ++begin_.contradictions;
      return;
    }
    if (held->second.is_final) begin_.sizes[index] = held->second.block.size;
    // The block was pending later, and the request that made it so is in a hole.
    if (held->second.block.pending) ++begin_.contradictions;
    blocks_.erase(held);
  }

  // Backwards, the completion of a free comes first: before it, the block was pending; before the
  // request, it was held.
  void UndoFree(const SnapshotEvent& event) {
    const auto [it, is_new] = blocks_.try_emplace(event.address);
    Held& held = it->second;
    const bool completes = event.action == Action::kFreeCompleted;
    if (!is_new && !completes && held.block.pending) {
      held.block.pending = false;
      return;
    }
    // Either a request without a completion, of a block that is not pending at the end; or a free
    // of a block that is held later without another allocation.
    if (!is_new || !completes) ++begin_.contradictions;
    held = {};
    held.block.address = event.address;
    held.block.size = RoundedBlockSize(event.size);
    held.block.requested = event.size;
    held.block.pending = completes;
    held.stream = event.stream;
  }

  void UndoMap(uint32_t index, uint64_t address, uint64_t end) {
    const Ranges::Removed removed = mapped_.Remove(address, end);
    if (removed.range.has_value()) begin_.pools[index] = removed.range->pool;
    // All of the mapped range existed then. What does not exist later was removed in a hole.
    if (!removed.range.has_value() || removed.size != end - address) ++begin_.contradictions;
    Reserve(address, end);
    if (address == end) return;
    std::vector<uint64_t> cuts(cuts_.upper_bound(address), cuts_.lower_bound(end));
    for (uint64_t cut : cuts) cuts_.erase(cut);
    if (!cuts.empty()) begin_.cuts[index] = std::move(cuts);
  }

  void UndoUnmap(const SnapshotEvent& event) {
    const uint64_t end = event.address + event.size;
    if (mapped_.Remove(event.address, end).range.has_value()) ++begin_.contradictions;
    mapped_.Add({event.address, event.size, event.stream, event.pool.value_or(0), false, {}});
    cuts_.insert(event.address);
    cuts_.insert(end);
    Reserve(event.address, end);
  }

  // Joins [address, end) with adjoining and overlapping ranges.
  void Reserve(uint64_t address, uint64_t end) {
    auto it = begin_.reserved.upper_bound(address);
    if (it != begin_.reserved.begin() && std::prev(it)->second >= address) --it;
    while (it != begin_.reserved.end() && it->first <= end) {
      address = std::min(address, it->first);
      end = std::max(end, it->second);
      it = begin_.reserved.erase(it);
    }
    begin_.reserved[address] = end;
  }

  void Gather() {
    std::map<uint64_t, const Held*> by_address;
    for (const auto& [address, held] : blocks_) by_address[address] = &held;
    for (const auto& [address, held] : by_address) {
      begin_.blocks.push_back(held->block);
      begin_.block_streams.push_back(held->stream);
    }
    for (auto& [address, held] : segments_) begin_.segments.push_back(std::move(held.segment));
    begin_.mapped = mapped_.All();
    begin_.cuts[DeviceBegin::kBefore].assign(cuts_.begin(), cuts_.end());
  }

  const SnapshotView& view_;
  const uint32_t device_;
  DeviceBegin begin_;
  absl::flat_hash_map<uint64_t, Held> blocks_;  // by address
  std::map<uint64_t, HeldSegment> segments_;    // by address
  Ranges mapped_;
  std::set<uint64_t> cuts_;  // cuts in what is mapped at this point
};

}  // namespace

const std::vector<uint64_t>& DeviceBegin::CutsOf(uint32_t index) const {
  static const auto* const none = new std::vector<uint64_t>;
  const auto known = cuts.find(index);
  return known == cuts.end() ? *none : known->second;
}

uint64_t RoundedBlockSize(uint64_t requested) {
  const uint64_t rounded = (requested + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize;
  return std::max(rounded, kMinBlockSize);
}

absl::StatusOr<DeviceBegin> StateBefore(const SnapshotView& view, uint32_t device,
                                        const std::vector<SnapshotSegment>& segments) {
  return Undo(view, device).Run(segments);
}

}  // namespace gmt::interop
