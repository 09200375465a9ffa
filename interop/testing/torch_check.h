// interop/testing/torch_check.h
//
// For tests: checks that PyTorch's viewer can rebuild every moment from a device's trace and
// segments. Undoes the events from the end as the viewer's "Allocator State History" does
// (torch/utils/viz/MemoryViz.js, PyTorch 2.6), and checks what the viewer assumes about each entry.

#ifndef GMT_INTEROP_TESTING_TORCH_CHECK_H_
#define GMT_INTEROP_TESTING_TORCH_CHECK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "interop/torch/torch_event.h"

namespace gmt::interop {

class TorchCheck {
 public:
  struct Segment {
    uint64_t size = 0, stream = 0;
    bool expandable = false;
    bool operator==(const Segment&) const = default;
  };
  struct Block {
    uint64_t size = 0;
    bool pending = false;
    bool operator==(const Block&) const = default;
  };
  using Segments = std::map<uint64_t, Segment>;
  using Blocks = std::map<uint64_t, Block>;

  // `segments` is the state after the last event.
  explicit TorchCheck(const std::vector<TorchSegment>& segments) {
    uint64_t reached = 0;
    for (const TorchSegment& segment : segments) {
      Expect(segment.address >= reached, "segments overlap", segment.address);
      uint64_t at = segment.address;
      for (const TorchBlock& block : segment.blocks) {
        Expect(block.address == at, "a gap before the block", block.address);
        at += block.size;
        if (block.row != analysis::kNoRow) blocks_[block.address] = {block.size, block.pending};
      }
      reached = segment.address + segment.size;
      Expect(at == reached, "blocks do not sum to the segment", segment.address);
      segments_[segment.address] = {segment.size, segment.stream, segment.expandable};
    }
  }

  void UndoAll(const std::vector<TorchEvent>& events) {
    for (auto event = events.rbegin(); event != events.rend(); ++event) Undo(*event);
  }

  const std::vector<std::string>& problems() const { return problems_; }
  // The state before the first event, after all events are undone.
  const Segments& segments() const { return segments_; }
  const Blocks& blocks() const { return blocks_; }

 private:
  void Undo(const TorchEvent& event) {
    const uint64_t at = event.address, end = at + event.size;
    switch (event.action) {
      case TorchEvent::kAlloc:
        Expect(blocks_.contains(at) && blocks_[at].size == event.size && !blocks_[at].pending,
               "alloc of no live block", at);
        blocks_.erase(at);
        return;
      case TorchEvent::kFreeRequested:
        Expect(blocks_.contains(at) && blocks_[at].pending, "free_requested of nothing pending",
               at);
        blocks_[at].pending = false;
        return;
      case TorchEvent::kFreeCompleted:
        Expect(!AnyIn(blocks_, at, end), "free_completed where a block lies", at);
        Expect(Inside(at, end), "a block outside all segments", at);
        blocks_[at] = {event.size, true};
        return;
      case TorchEvent::kSegmentAlloc:
        Expect(segments_.contains(at) && segments_[at].size == event.size,
               "segment_alloc of no segment", at);
        Expect(!AnyIn(blocks_, at, end), "segment_alloc around a block", at);
        segments_.erase(at);
        return;
      case TorchEvent::kSegmentFree:
        Expect(!AnyIn(segments_, at, end), "segment_free where a segment lies", at);
        segments_[at] = {event.size, event.stream, false};
        return;
      case TorchEvent::kSegmentMap:
        return UndoMap(event);
      case TorchEvent::kSegmentUnmap:
        return UndoUnmap(event);
      case TorchEvent::kOutOfMemory:
      case TorchEvent::kSnapshot:
      case TorchEvent::kOther:
        return;
    }
  }

  void UndoMap(const TorchEvent& event) {
    const uint64_t at = event.address, end = at + event.size;
    Expect(!AnyIn(blocks_, at, end), "segment_map around a block", at);
    if (!Inside(at, end)) return Expect(false, "segment_map of no segment", at);
    const auto found = std::prev(segments_.upper_bound(at));
    const auto [start, segment] = *found;
    Expect(segment.expandable && segment.stream == event.stream, "segment_map of another kind", at);
    segments_.erase(found);
    if (start < at) segments_[start] = {at - start, segment.stream, true};
    if (end < start + segment.size)
      segments_[end] = {start + segment.size - end, segment.stream, true};
  }

  void UndoUnmap(const TorchEvent& event) {
    uint64_t at = event.address, end = at + event.size;
    Expect(!AnyIn(segments_, at, end), "segment_unmap where a segment lies", at);
    const auto joins = [&](const Segment& other) {
      return other.expandable && other.stream == event.stream;
    };
    if (const auto next = segments_.find(end); next != segments_.end() && joins(next->second)) {
      end += next->second.size;
      segments_.erase(next);
    }
    if (const auto after = segments_.lower_bound(at); after != segments_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second.size == at && joins(before->second)) at = before->first;
    }
    segments_[at] = {end - at, event.stream, true};
  }

  template <typename Ranges>
  static bool AnyIn(const Ranges& ranges, uint64_t at, uint64_t end) {
    const auto after = ranges.lower_bound(end);
    if (after == ranges.begin()) return false;
    const auto& [start, range] = *std::prev(after);
    return start + range.size > at;
  }
  bool Inside(uint64_t at, uint64_t end) const {
    const auto after = segments_.upper_bound(at);
    if (after == segments_.begin()) return false;
    const auto& [start, segment] = *std::prev(after);
    return end <= start + segment.size;
  }
  void Expect(bool holds, const char* what, uint64_t address) {
    if (!holds) problems_.push_back(absl::StrCat(what, " at ", absl::Hex(address)));
  }

  Segments segments_;
  Blocks blocks_;
  std::vector<std::string> problems_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TESTING_TORCH_CHECK_H_
