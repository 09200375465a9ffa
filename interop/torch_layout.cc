#include "interop/torch_layout.h"

#include <algorithm>
#include <tuple>

#include "analysis/replay.h"

namespace gmt::interop {
namespace {

using analysis::kDriverHeap;
using analysis::kHostHeap;
using analysis::Mapping;
using analysis::RowId;
using analysis::Rows;
using analysis::Step;
using analysis::Trace;

bool HoldsBlocks(const Trace& trace, RowId row) {
  return (trace.rows.flags[row] & analysis::kRowHoldsBlocks) != 0;
}

bool IsPhysical(const Trace& trace, RowId row) {
  return trace.rows.heap[row] == kDriverHeap && trace.rows.memory[row] == VMM &&
         (trace.rows.flags[row] & analysis::kRowHandle) != 0;
}

auto Order(const TorchSegment& segment) { return std::tuple(segment.device, segment.address); }

// Ranges of driver memory, by device and address; not yet with blocks.
std::vector<TorchSegment> Ranges(const Trace& trace, Step step) {
  std::vector<TorchSegment> ranges;
  const Rows& rows = trace.rows;
  for (RowId row : analysis::HeldAfter(trace, step)) {
    if (rows.heap[row] != kDriverHeap || rows.size[row] == 0 || IsPhysical(trace, row)) continue;
    ranges.push_back({rows.device[row], rows.address[row], rows.size[row], false, row, {}});
  }
  for (const Mapping& mapping : trace.mappings) {
    const RowId row = mapping.physical;
    if (row == analysis::kNoRow || !mapping.HeldAfter(step) || !rows.HeldAfter(row, step)) continue;
    ranges.push_back(
        {rows.device[row], mapping.address, mapping.size, HoldsBlocks(trace, row), row, {}});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const TorchSegment& a, const TorchSegment& b) { return Order(a) < Order(b); });
  return ranges;
}

// Adjoining expandable ranges are one segment: a block may reach over their border.
std::vector<TorchSegment> Merged(std::vector<TorchSegment> ranges) {
  std::vector<TorchSegment> segments;
  for (TorchSegment& range : ranges) {
    if (!segments.empty()) {
      TorchSegment& last = segments.back();
      if (last.expandable && range.expandable && last.device == range.device &&
          last.address + last.size == range.address) {
        last.size += range.size;
        continue;
      }
    }
    segments.push_back(std::move(range));
  }
  return segments;
}

std::vector<TorchSegment>::iterator SegmentOf(std::vector<TorchSegment>& segments, int32_t device,
                                              uint64_t address, uint64_t size) {
  auto after = std::upper_bound(
      segments.begin(), segments.end(), std::tuple(device, address),
      [](const auto& key, const TorchSegment& segment) { return key < Order(segment); });
  if (after == segments.begin()) return segments.end();
  const auto segment = std::prev(after);
  const bool inside = segment->device == device && address - segment->address < segment->size &&
                      size <= segment->size - (address - segment->address);
  return inside ? segment : segments.end();
}

void AddBlocks(const Trace& trace, Step step, std::vector<TorchSegment>& segments) {
  const Rows& rows = trace.rows;
  std::vector<TorchSegment> homeless;
  for (RowId row : analysis::HeldAfter(trace, step)) {
    if (rows.heap[row] <= kHostHeap || rows.device[row] < 0 || rows.size[row] == 0) continue;
    const TorchBlock block{rows.address[row], rows.size[row], row};
    const auto segment = SegmentOf(segments, rows.device[row], block.address, block.size);
    if (segment != segments.end()) {
      segment->blocks.push_back(block);
    } else {
      homeless.push_back({rows.device[row], block.address, block.size, false, row, {block}});
    }
  }
  segments.insert(segments.end(), std::make_move_iterator(homeless.begin()),
                  std::make_move_iterator(homeless.end()));
}

// Driver memory that never held blocks is one block; else free blocks fill the gaps.
void FillGaps(const Trace& trace, TorchSegment& segment) {
  if (segment.blocks.empty() && !HoldsBlocks(trace, segment.row)) {
    segment.blocks = {{segment.address, segment.size, segment.row}};
    return;
  }
  std::sort(segment.blocks.begin(), segment.blocks.end(),
            [](const TorchBlock& a, const TorchBlock& b) { return a.address < b.address; });
  std::vector<TorchBlock> filled;
  uint64_t reached = segment.address;
  const uint64_t end = segment.address + segment.size;
  for (const TorchBlock& block : segment.blocks) {
    if (block.address < reached) continue;  // overlaps one before it: a free was lost
    if (block.address > reached) filled.push_back({reached, block.address - reached});
    filled.push_back(block);
    reached = block.address + block.size;
  }
  if (reached < end) filled.push_back({reached, end - reached});
  segment.blocks = std::move(filled);
}

}  // namespace

bool IsPlace(const Trace& trace, RowId row) { return !IsPhysical(trace, row); }

std::vector<TorchSegment> SegmentsAfter(const Trace& trace, Step step) {
  std::vector<TorchSegment> segments = Merged(Ranges(trace, step));
  AddBlocks(trace, step, segments);
  std::sort(segments.begin(), segments.end(),
            [](const TorchSegment& a, const TorchSegment& b) { return Order(a) < Order(b); });
  for (TorchSegment& segment : segments) FillGaps(trace, segment);
  return segments;
}

}  // namespace gmt::interop
