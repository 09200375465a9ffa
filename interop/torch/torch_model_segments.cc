// TorchModel (interop/torch/torch_model.h): driver memory, mapped ranges, and what overlaps them.

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "interop/torch/torch_model.h"

namespace gmt::interop {

using analysis::Mapping;
using analysis::RowId;

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
  Emit(TorchEvent::kSegmentAlloc, address, size, segment.stream, row, segment.stack);
  segments_[address] = segment;
  PutBack(displaced);
}

void TorchModel::EndSegment(Segments_::iterator segment, uint32_t stack) {
  const uint64_t address = segment->first;
  const Segment ended = segment->second;
  segments_.erase(segment);
  EndBlocks(address, address + ended.size);
  Emit(TorchEvent::kSegmentFree, address, ended.size, ended.stream, ended.row, stack);
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
  Emit(TorchEvent::kSegmentMap, run.address, segment.size, segment.stream, row, segment.stack);
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
    Emit(TorchEvent::kSegmentUnmap, from, to - from, segment.stream, segment.row,
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

}  // namespace gmt::interop
