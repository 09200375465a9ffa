#include "viewer/questions/segments.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "analysis/text.h"
#include "viewer/index/names.h"

namespace gmt::viewer {
namespace {

using analysis::Piece;
using analysis::RowId;
using analysis::SegmentMap;

class SegmentsMaker {
 public:
  SegmentsMaker(Recording& recording, LaneMemory lane, uint32_t event)
      : recording_(recording), rows_(recording.rows()), lane_(lane), event_(event) {}

  Segments Make() {
    made_.event = event_;
    made_.ns = recording_.trace().TimeOf(event_);
    DescribeEvent();
    const std::vector<RowId> held = recording_.held.After(event_);
    for (const RowId row : held) {
      if (!recording_.IsIn(lane_, row) || !rows_.HeldAfter(row, event_)) continue;
      made_.live_bytes += rows_.size[row];
      unplaced_[row] = rows_.size[row];
    }
    if (lane_.heap > analysis::kHostHeap) {
      for (const SegmentMap& segment :
           SegmentsAfter(recording_.trace(), lane_.device, event_, held)) {
        AddSegment(segment);
      }
    }
    AddUnplaced(held);
    std::stable_sort(made_.segments.begin(), made_.segments.end(),
                     [](const SegmentState& a, const SegmentState& b) {
                       return std::tie(a.pool, a.stream, a.address) <
                              std::tie(b.pool, b.stream, b.address);
                     });
    return std::move(made_);
  }

 private:
  void DescribeEvent() {
    if (event_ == 0) {
      made_.what = "before the first event";
      return;
    }
    const analysis::StepRecord record = recording_.trace().steps[event_ - 1];
    if (record.row == analysis::kNoRow) {
      made_.what = "a free that the driver refused";
      return;
    }
    made_.row = record.row;
    made_.what = absl::StrCat(record.is_death ? "free " : "alloc ", Bytes(rows_.size[record.row]),
                              " at ", Address(rows_.address[record.row]));
    // An event of another heap changes nothing here; the text names that heap.
    if (!recording_.IsIn(lane_, record.row)) {
      absl::StrAppend(&made_.what, " of ", recording_.trace().heaps[rows_.heap[record.row]]);
    }
    const analysis::FrameText* own =
        recording_.frames.Own(rows_.stack[record.row], rows_.forward_stack[record.row]);
    const std::string place = own == nullptr ? "" : own->Place();
    if (!place.empty()) absl::StrAppend(&made_.what, " (", place, ")");
  }

  void AddSegment(const SegmentMap& segment) {
    SegmentState state;
    state.address = segment.address;
    state.size = segment.size;
    state.pool = PoolName(rows_, segment);
    state.stream =
        segment.stream ? absl::StrCat("0x", absl::Hex(*segment.stream)) : std::string(kUnknownName);
    state.expandable = segment.is_expandable;
    state.stack = rows_.stack[segment.row];
    uint64_t hole = 0;
    for (const Piece& piece : segment.pieces) {
      // Free memory may consist of several pieces, some of which could be released; it is one hole.
      hole = piece.is_free() ? hole + piece.size : 0;
      made_.largest_hole = std::max(made_.largest_hole, hole);
      if (piece.is_free()) continue;
      const bool pending = piece.kind == Piece::kAwaiting;
      // A block that another heap's allocator placed in this segment is not part of this lane.
      if (!recording_.IsIn(lane_, piece.row)) continue;
      AddBlock(state, piece.address - segment.address, piece.size, piece.row, pending);
      if (!pending) unplaced_[piece.row] -= piece.size;
    }
    made_.reserved_bytes += state.size;
    made_.segments.push_back(std::move(state));
  }

  void AddBlock(SegmentState& state, uint64_t offset, uint64_t bytes, RowId row, bool pending) {
    const std::optional<uint64_t> requested = rows_.Requested(row);
    state.offset.push_back(offset);
    state.bytes.push_back(bytes);
    state.requested.push_back(
        requested && *requested <= INT64_MAX ? static_cast<int64_t>(*requested) : int64_t{-1});
    state.row.push_back(row);
    state.key.push_back(recording_.frames.Key(rows_.stack[row]));
    state.pending.push_back(pending ? 1 : 0);
    state.category.push_back(static_cast<uint8_t>(recording_.CategoryOf(row)));
  }

  // M1, M2.
  void AddUnplaced(const std::vector<RowId>& held) {
    const bool has_segments = lane_.heap > analysis::kHostHeap;
    SegmentState rest;
    rest.pool = "in no segment that is known";
    for (const RowId row : held) {
      const auto found = unplaced_.find(row);
      if (found == unplaced_.end() || found->second == 0) continue;
      if (has_segments) {
        AddBlock(rest, rest.size, found->second, row, false);
        rest.size += found->second;
        continue;
      }
      SegmentState piece;
      piece.address = rows_.address[row];
      piece.size = rows_.size[row];
      piece.pool = recording_.trace().heaps[lane_.heap];
      piece.stream = StreamName(rows_, row);
      piece.stack = rows_.stack[row];
      AddBlock(piece, 0, piece.size, row, false);
      made_.reserved_bytes += piece.size;
      made_.segments.push_back(std::move(piece));
    }
    if (!rest.row.empty()) made_.segments.push_back(std::move(rest));
  }

  Recording& recording_;
  const analysis::Rows& rows_;
  const LaneMemory lane_;
  const uint32_t event_;
  absl::flat_hash_map<RowId, uint64_t> unplaced_;  // bytes not placed yet, by held row
  Segments made_;
};

}  // namespace

std::string PoolName(const analysis::Rows& rows, const SegmentMap& segment) {
  std::string name = segment.is_small ? "small" : "large";
  if (segment.is_private) {
    const std::optional<uint64_t> pool = rows.Pool(segment.row);
    name = pool && *pool != 0 ? absl::StrCat("private 0x", absl::Hex(*pool)) : "private";
  }
  if (segment.is_expandable) name += ", expandable";
  return name;
}

std::optional<SegmentMap> SegmentOf(const Recording& recording, RowId row, uint32_t event,
                                    const std::vector<RowId>& held) {
  const analysis::Rows& rows = recording.rows();
  if (rows.heap[row] <= analysis::kHostHeap) return std::nullopt;
  const uint64_t address = rows.address[row];
  for (SegmentMap& segment : SegmentsAfter(recording.trace(), rows.device[row], event, held)) {
    if (address >= segment.address && address < segment.end()) return std::move(segment);
  }
  return std::nullopt;
}

absl::StatusOr<Segments> MakeSegments(Recording& recording, uint32_t lane, uint32_t event) {
  if (absl::Status status = recording.Check(lane, event); !status.ok()) return status;
  return SegmentsMaker(recording, recording.lanes[lane], event).Make();
}

}  // namespace gmt::viewer
