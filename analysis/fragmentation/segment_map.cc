#include "analysis/fragmentation/segment_map.h"

#include <algorithm>
#include <cstddef>

#include "analysis/trace/captures.h"

namespace gmt::analysis {
namespace {

// c10/cuda/CUDACachingAllocator.cpp: kSmallSize.
constexpr uint64_t kSmallBlockBytes = 1 << 20;
// More than any device has. Keeps sums of damaged sizes within 64 bits.
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;
// How many steps after a segment's birth its first block is searched.
constexpr Step kStepsToFirstBlock = 1 << 12;

// Contiguous driver memory: a segment, or what one call mapped.
struct Chunk {
  uint64_t address = 0, size = 0;
  RowId row = kNoRow;
  Step birth = 0;
  bool is_page = false;
  std::optional<uint64_t> stream = {};

  uint64_t end() const { return address + size; }
};

struct Block {
  uint64_t address = 0, end = 0;
  RowId row = kNoRow;
  bool live = false;
};

template <typename T>
void SortByAddress(std::vector<T>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const T& a, const T& b) { return a.address < b.address; });
}

class SegmentMapper {
 public:
  // `candidates`: all rows that are held or pending; null if unknown.
  SegmentMapper(const Trace& trace, int32_t device, Step step,
                const std::vector<RowId>* candidates = nullptr)
      : trace_(trace), rows_(trace.rows), device_(device), step_(step), candidates_(candidates) {}

  std::vector<SegmentMap> Map() && {
    FindChunks();
    if (chunks_.empty()) return {};
    JoinPages();
    FindBlocks();
    size_t next = 0;
    for (size_t i = 0; i < segments_.size(); ++i) next = Fill(i, next);
    if (candidates_ == nullptr) {
      AskBlocksOfThePast();
    } else {
      AskFirstBlocks();
    }
    return std::move(segments_);
  }

 private:
  template <typename Visit>
  void ForEachCandidate(const Visit& visit) const {
    if (candidates_ != nullptr) {
      for (const RowId row : *candidates_) visit(row);
      return;
    }
    const RowId count = rows_.count();
    for (RowId row = 0; row < count; ++row) visit(row);
  }

  void FindChunks() {
    const auto is_segment = [&](RowId row) {
      return (rows_.flags[row] & kRowHoldsBlocks) != 0 && rows_.device[row] == device_ &&
             rows_.HeldAfter(row, step_);
    };
    ForEachCandidate([&](RowId row) {
      if (!is_segment(row) || (rows_.flags[row] & kRowHandle) != 0) return;
      Chunk chunk{rows_.address[row], rows_.size[row], row, rows_.birth[row]};
      if ((rows_.flags[row] & kRowHasStream) != 0) chunk.stream = rows_.stream[row];
      AddChunk(chunk);
    });
    for (const Mapping& m : trace_.mappings) {
      if (m.physical == kNoRow || !m.HeldAfter(step_) || !is_segment(m.physical)) continue;
      Chunk chunk{m.address, m.size, m.physical, m.birth, true};
      if (m.has_stream) chunk.stream = m.stream;
      AddChunk(chunk);
    }
    SortByAddress(chunks_);
    uint64_t reached = 0;
    for (Chunk& chunk : chunks_) {  // overlaps belong to the first chunk
      const uint64_t end = chunk.end();
      chunk.address = std::max(chunk.address, reached);
      chunk.size = end > chunk.address ? end - chunk.address : 0;
      reached = std::max(reached, end);
    }
    std::erase_if(chunks_, [](const Chunk& chunk) { return chunk.size == 0; });
  }
  void AddChunk(const Chunk& chunk) {
    const bool makes_sense =
        chunk.size > 0 && chunk.size < kMaxBytes && chunk.address + chunk.size > chunk.address;
    if (makes_sense) chunks_.push_back(chunk);
  }
  // The unit that can be released at once. A snapshot of PyTorch's own recorder contains what one
  // call mapped, which may be many pages.
  uint64_t UnitOf(const Chunk& chunk) const {
    if (!chunk.is_page || trace_.imported_from.empty()) return chunk.size;
    return std::min(chunk.size,
                    chunk.size % kLargePageBytes == 0 ? kLargePageBytes : kSmallSegmentBytes);
  }

  void JoinPages() {
    for (size_t i = 0; i < chunks_.size(); ++i) {
      const Chunk& chunk = chunks_[i];
      const bool joins = chunk.is_page && !segments_.empty() && segments_.back().is_expandable &&
                         segments_.back().end() == chunk.address &&
                         segments_.back().stream == chunk.stream &&
                         Private(chunk.row) == segments_.back().is_private;
      if (joins) {
        segments_.back().size += chunk.size;
        segments_.back().is_small &= UnitOf(chunk) <= kSmallSegmentBytes;
        continue;
      }
      SegmentMap segment;
      segment.row = chunk.row;
      segment.address = chunk.address;
      segment.size = chunk.size;
      segment.stream = chunk.stream;
      segment.is_expandable = chunk.is_page;
      segment.is_small = UnitOf(chunk) <= kSmallSegmentBytes;
      segment.is_private = Private(chunk.row);
      segments_.push_back(std::move(segment));
      first_chunk_.push_back(i);
    }
    first_chunk_.push_back(chunks_.size());
  }
  bool Private(RowId row) const { return rows_.Pool(row).value_or(0) != 0; }

  bool IsBlock(RowId row) const {
    return rows_.heap[row] > kHostHeap && rows_.device[row] == device_ && !rows_.IsRegion(row);
  }

  void FindBlocks() {
    ForEachCandidate([&](RowId row) {
      if (rows_.death[row] <= step_ && rows_.wait[row] == 0) return;  // skips most rows early
      if (rows_.birth[row] > step_ || rows_.Completed(row) <= step_ || !IsBlock(row)) return;
      const bool live = rows_.HeldAfter(row, step_);
      const uint64_t end = rows_.address[row] + rows_.size[row];
      if (end <= rows_.address[row] || (!live && !rows_.PendingAfter(row, step_))) return;
      blocks_.push_back({rows_.address[row], end, row, live});
    });
    SortByAddress(blocks_);
    uint64_t reached = 0;
    for (Block& block : blocks_) {
      block.address = std::max(block.address, reached);
      reached = std::max(reached, block.end);
    }
    std::erase_if(blocks_, [](const Block& block) { return block.address >= block.end; });
  }

  // Adds the blocks from `next` on to the segment. Returns the first one that extends beyond it.
  size_t Fill(size_t index, size_t next) {
    SegmentMap& segment = segments_[index];
    while (next < blocks_.size() && blocks_[next].end <= segment.address) ++next;
    uint64_t reached = segment.address;
    for (; next < blocks_.size() && blocks_[next].address < segment.end(); ++next) {
      const Block& block = blocks_[next];
      const uint64_t begin = std::max(block.address, segment.address);
      const uint64_t end = std::min(block.end, segment.end());
      AddFree(index, reached, begin);
      segment.pieces.push_back(
          {block.live ? Piece::kLive : Piece::kAwaiting, begin, end - begin, block.row});
      reached = end;
      NoteBlock(segment, block.row);
      if (block.end > segment.end()) break;
    }
    AddFree(index, reached, segment.end());
    return next;
  }

  // Whole pages of an expandable segment can be released; other segments only as a whole.
  void AddFree(size_t index, uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    std::vector<Piece>& pieces = segments_[index].pieces;
    uint64_t first = end, last = end;
    for (size_t i = FirstChunkBehind(index, begin); i < first_chunk_[index + 1]; ++i) {
      const Chunk& chunk = chunks_[i];
      if (chunk.address >= end) break;
      const uint64_t page = UnitOf(chunk);
      const uint64_t skipped = begin > chunk.address ? begin - chunk.address : 0;
      const uint64_t from = chunk.address + (skipped + page - 1) / page * page;
      const uint64_t to =
          end >= chunk.end() ? chunk.end() : chunk.address + (end - chunk.address) / page * page;
      if (from >= to) continue;
      if (first == end) first = from;
      last = to;
    }
    if (begin < first) pieces.push_back({Piece::kFree, begin, first - begin});
    if (first < last) pieces.push_back({Piece::kReleasable, first, last - first});
    if (first < last && last < end) pieces.push_back({Piece::kFree, last, end - last});
  }
  // Returns the segment's first chunk that ends after `address`.
  size_t FirstChunkBehind(size_t index, uint64_t address) const {
    const auto at = [&](size_t i) { return chunks_.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto found =
        std::upper_bound(at(first_chunk_[index]), at(first_chunk_[index + 1]), address,
                         [](uint64_t begin, const Chunk& chunk) { return begin < chunk.end(); });
    return static_cast<size_t>(found - chunks_.begin());
  }

  void NoteBlock(SegmentMap& segment, RowId row) {
    if (!segment.stream && (rows_.flags[row] & kRowHasStream) != 0) {
      segment.stream = rows_.stream[row];
    }
    if (rows_.size[row] > kSmallBlockBytes) segment.is_small = false;
    if (!segment.is_private) segment.is_private = Private(row) || WasBornInACapture(row);
  }

  // Segments without a live block get stream and pool from their earlier blocks.
  void AskBlocksOfThePast() {
    Step oldest = kNever;
    for (size_t i = 0; i < segments_.size(); ++i) {
      const bool has_blocks = std::any_of(segments_[i].pieces.begin(), segments_[i].pieces.end(),
                                          [](const Piece& piece) { return piece.row != kNoRow; });
      if (!has_blocks) oldest = std::min(oldest, chunks_[first_chunk_[i]].birth);
    }
    if (oldest == kNever) return;
    for (RowId row = 0; row < rows_.count(); ++row) {
      if (rows_.birth[row] > step_ || rows_.birth[row] < oldest || !IsBlock(row)) continue;
      const auto found = std::upper_bound(
          segments_.begin(), segments_.end(), rows_.address[row],
          [](uint64_t address, const SegmentMap& segment) { return address < segment.end(); });
      if (found == segments_.end() || rows_.address[row] < found->address) continue;
      const auto index = static_cast<size_t>(found - segments_.begin());
      if (rows_.birth[row] >= chunks_[first_chunk_[index]].birth) NoteBlock(*found, row);
    }
  }

  // An allocator creates a segment for a block that it then places in it, so the first block comes
  // soon.
  void AskFirstBlocks() {
    std::vector<size_t> silent;  // segments, by address
    for (size_t i = 0; i < segments_.size(); ++i) {
      const bool has_blocks = std::any_of(segments_[i].pieces.begin(), segments_[i].pieces.end(),
                                          [](const Piece& piece) { return piece.row != kNoRow; });
      if (!has_blocks) silent.push_back(i);
    }
    for (const size_t i : silent) NoteFirstBlock(segments_[i], chunks_[first_chunk_[i]].birth);
  }
  void NoteFirstBlock(SegmentMap& segment, Step birth) {
    const Step last = step_ - birth > kStepsToFirstBlock ? birth + kStepsToFirstBlock : step_;
    for (Step step = birth; step < last; ++step) {
      const StepRecord record = trace_.steps[step];
      if (record.row == kNoRow || record.is_death || !IsBlock(record.row)) continue;
      const uint64_t address = rows_.address[record.row];
      if (address < segment.address || address >= segment.end()) continue;
      NoteBlock(segment, record.row);
      if (segment.stream) return;
    }
  }

  bool WasBornInACapture(RowId row) const {
    return AnyCaptureAt(trace_, rows_.birth[row], [&](const Capture& capture) {
      const bool same_stream =
          (rows_.flags[row] & kRowHasStream) != 0 && rows_.stream[row] == capture.stream;
      const bool same_thread =
          (rows_.flags[row] & kRowHasThread) != 0 && rows_.thread[row] == capture.thread;
      return same_stream || same_thread;
    });
  }

  const Trace& trace_;
  const Rows& rows_;
  const int32_t device_;
  const Step step_;
  const std::vector<RowId>* const candidates_;
  std::vector<Chunk> chunks_;  // by address, disjoint
  std::vector<SegmentMap> segments_;
  std::vector<size_t> first_chunk_;  // of each segment, plus the end of the last
  std::vector<Block> blocks_;        // by address, disjoint
};

}  // namespace

std::vector<SegmentMap> SegmentsAfter(const Trace& trace, int32_t device, Step step) {
  return SegmentMapper(trace, device, step).Map();
}

std::vector<SegmentMap> SegmentsAfter(const Trace& trace, int32_t device, Step step,
                                      const std::vector<RowId>& rows) {
  return SegmentMapper(trace, device, step, &rows).Map();
}

}  // namespace gmt::analysis
