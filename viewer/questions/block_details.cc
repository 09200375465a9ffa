#include "viewer/questions/block_details.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "viewer/index/names.h"
#include "viewer/questions/segments.h"

namespace gmt::viewer {
namespace {

using analysis::Piece;
using analysis::RowId;
using analysis::SegmentMap;

std::optional<uint32_t> LaneOf(const Recording& recording, RowId row) {
  for (uint32_t lane = 0; lane < recording.lanes.size(); ++lane) {
    if (recording.IsIn(recording.lanes[lane], row)) return lane;
  }
  return std::nullopt;
}

std::optional<int64_t> TimeOf(const analysis::Trace& trace, uint32_t event) {
  if (event == kNever) return std::nullopt;
  return trace.TimeOf(event);
}

// The wait of a block ends between two events, at a time of its own.
std::optional<int64_t> CompletedAt(const analysis::Trace& trace, RowId row) {
  if ((trace.rows.flags[row] & analysis::kRowAwaited) != 0) {
    const analysis::Step step = trace.rows.Completed(row);
    auto found = std::lower_bound(trace.completions.begin(), trace.completions.end(), step,
                                  [](const analysis::Completion& completion, analysis::Step at) {
                                    return completion.step < at;
                                  });
    for (; found != trace.completions.end() && found->step == step; ++found) {
      if (found->row == row) return found->t_ns;
    }
  }
  return TimeOf(trace, trace.rows.Completed(row));
}

void Name(Recording& recording, RowId row, BlockDetails& block) {
  const analysis::Rows& rows = recording.rows();
  block.name = recording.frames.definitions().string(rows.Name(row));
  block.tensor = TensorText(recording.frames.definitions(), rows, row);
  block.category = analysis::NameOf(recording.CategoryOf(row));
  if (recording.categories != nullptr) {
    block.reason = recording.categories->Reason(row);
    block.confidence = NameOf(recording.categories->Of(row).confidence);
    block.alive = recording.alive_texts().Of(row);
  }
  block.stream = StreamName(rows, row);
  block.thread = ThreadName(rows, row);
  if (const std::optional<uint64_t> pool = rows.Pool(row)) {
    block.pool = absl::StrCat("0x", absl::Hex(*pool));
  }
}

void FillLifetime(Recording& recording, RowId row, BlockDetails& block) {
  const analysis::Trace& trace = recording.trace();
  block.birth = trace.rows.birth[row];
  block.death = trace.rows.death[row];
  block.completed = trace.rows.Completed(row);
  block.birth_ns = trace.TimeOf(block.birth);
  block.death_ns = TimeOf(trace, block.death);
  block.completed_ns = CompletedAt(trace, row);
  if (block.birth == 0) return;
  const LoopPhases& phases = recording.phases();
  block.step = phases.StepAt(block.birth);
  block.phase = analysis::NameOf(phases.At(block.birth));
}

Neighbour NeighbourOf(Recording& recording, const Piece& piece) {
  Neighbour neighbour;
  neighbour.size = piece.size;
  if (piece.is_free()) {
    neighbour.label = "hole";
    return neighbour;
  }
  neighbour.row = piece.row;
  neighbour.label = recording.frames.Label(recording.rows().stack[piece.row],
                                           recording.rows().forward_stack[piece.row]);
  if (piece.kind == Piece::kAwaiting) neighbour.label += ", freed and waiting";
  return neighbour;
}

// Free memory may consist of several pieces, some of which could be released; here it is one hole.
Piece Whole(const SegmentMap& segment, size_t index, int direction) {
  Piece whole = segment.pieces[index];
  for (size_t i = index; whole.is_free();) {
    if (direction < 0 && i == 0) break;
    i = direction < 0 ? i - 1 : i + 1;
    if (i >= segment.pieces.size() || !segment.pieces[i].is_free()) break;
    whole.size += segment.pieces[i].size;
  }
  return whole;
}

void Place(Recording& recording, RowId row, const std::vector<RowId>& held, BlockDetails& block) {
  const std::optional<SegmentMap> segment = SegmentOf(recording, row, block.birth, held);
  if (!segment) return;
  block.segment = {segment->address, segment->size, block.address - segment->address};
  if (block.pool.empty()) block.pool = PoolName(recording.rows(), *segment);
  const auto& pieces = segment->pieces;
  const auto found = std::find_if(pieces.begin(), pieces.end(),
                                  [&](const Piece& piece) { return piece.row == row; });
  if (found == pieces.end()) return;
  const auto index = static_cast<size_t>(found - pieces.begin());
  if (index > 0) block.before = NeighbourOf(recording, Whole(*segment, index - 1, -1));
  if (index + 1 < pieces.size()) {
    block.after = NeighbourOf(recording, Whole(*segment, index + 1, 1));
  }
}

BlockDetails::SameStack SameStackOf(Recording& recording, RowId row, const std::vector<RowId>& held,
                                    const BlockDetails& block) {
  const analysis::Rows& rows = recording.rows();
  BlockDetails::SameStack same;
  for (const RowId other : held) {
    const bool counts = rows.stack[other] == rows.stack[row] &&
                        rows.forward_stack[other] == rows.forward_stack[row] &&
                        recording.IsIn(recording.lanes[*block.lane], other) &&
                        rows.HeldAfter(other, block.birth);
    if (counts) same.live_bytes += rows.size[other];
  }
  GroupHistory& history = recording.histories.OfStacks(recording, *block.lane);
  const uint32_t group = history.grouper.Of(row);
  same.blocks = history.blocks[group];
  same.peak_bytes = history.peak_bytes[group];
  return same;
}

}  // namespace

absl::StatusOr<BlockDetails> DescribeBlock(Recording& recording, uint32_t row) {
  const analysis::Rows& rows = recording.rows();
  if (row >= rows.count()) {
    return absl::NotFoundError(
        absl::StrCat("there is no block ", row, "; the recording has ", rows.count()));
  }
  BlockDetails block;
  block.row = row;
  block.lane = LaneOf(recording, row);
  block.address = rows.address[row];
  block.size = rows.size[row];
  block.requested = rows.Requested(row);
  Name(recording, row, block);
  FillLifetime(recording, row, block);
  block.stack = recording.frames.Info(rows.stack[row]);
  block.stack.label = recording.frames.Label(rows.stack[row], rows.forward_stack[row]);
  if (const uint32_t stack = rows.FreeStack(row)) block.free_stack = recording.frames.Info(stack);
  if (const uint32_t stack = rows.forward_stack[row]) {
    block.forward_stack = recording.frames.Info(stack);
  }
  const std::vector<RowId> held = recording.held.After(block.birth);
  Place(recording, row, held, block);
  if (block.lane) block.same_stack = SameStackOf(recording, row, held, block);
  return block;
}

}  // namespace gmt::viewer
