#include "analysis/examination/cache_state.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace gmt::analysis {
namespace {

constexpr uint64_t kSmallSegmentBytes = 2 << 20;

struct Piece {
  uint64_t address = 0, size = 0;
  PoolState::Kind pool = PoolState::kSmall;
  Step birth = 0;
  uint64_t allocated = 0, pending = 0, blocks = 0;
  std::optional<uint64_t> stream = {};  // of its blocks

  uint64_t end() const { return address + size; }
};

PoolState::Kind PoolOf(const Trace& trace, RowId row) {
  if (trace.rows.Pool(row).value_or(0) != 0) return PoolState::kPrivate;
  return trace.rows.size[row] <= kSmallSegmentBytes ? PoolState::kSmall : PoolState::kLarge;
}

// Returns the driver memory that holds blocks, by address.
std::vector<Piece> Pieces(const Trace& trace, int32_t device, Step step) {
  const Rows& rows = trace.rows;
  const auto is_segment = [&](RowId row) {
    return (rows.flags[row] & kRowHoldsBlocks) != 0 && rows.device[row] == device &&
           rows.HeldAfter(row, step);
  };
  std::vector<Piece> pieces;
  const RowId count = rows.count();
  for (RowId row = 0; row < count; ++row) {
    if (is_segment(row) && (rows.flags[row] & kRowHandle) == 0) {
      pieces.push_back({rows.address[row], rows.size[row], PoolOf(trace, row), rows.birth[row]});
    }
  }
  for (const Mapping& mapping : trace.mappings) {
    if (mapping.physical == kNoRow || !mapping.HeldAfter(step) || !is_segment(mapping.physical)) {
      continue;
    }
    pieces.push_back(
        {mapping.address, mapping.size, PoolOf(trace, mapping.physical), mapping.birth});
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.address < b.address; });
  return pieces;
}

std::vector<Piece>::iterator PieceAt(uint64_t address, std::vector<Piece>& pieces) {
  return std::upper_bound(pieces.begin(), pieces.end(), address,
                          [](uint64_t at, const Piece& piece) { return at < piece.end(); });
}

// A block of an expandable segment may lie in several of its pages.
void Place(uint64_t address, uint64_t size, bool live, std::vector<Piece>& pieces) {
  auto it = PieceAt(address, pieces);
  bool first = true;
  for (; it != pieces.end() && it->address < address + size; ++it) {
    const uint64_t bytes = std::min(it->end(), address + size) - std::max(it->address, address);
    (live ? it->allocated : it->pending) += bytes;
    if (live && first) ++it->blocks;
    first = false;
  }
}

// Sets the stream of pieces that had none, from a block that was ever in them; returns how many
// were set.
size_t NoteStream(const Rows& rows, RowId block, std::vector<Piece>& pieces) {
  size_t noted = 0;
  const uint64_t end = rows.address[block] + rows.size[block];
  for (auto it = PieceAt(rows.address[block], pieces); it != pieces.end() && it->address < end;
       ++it) {
    if (it->stream || rows.birth[block] < it->birth) continue;
    it->stream = rows.stream[block];
    ++noted;
  }
  return noted;
}

// The last block in a piece determines its stream. Walks backwards, because that block is near the
// end.
void NoteStreams(const Trace& trace, int32_t device, Step step, std::vector<Piece>& pieces) {
  const Rows& rows = trace.rows;
  size_t without_stream = pieces.size();
  for (RowId row = rows.count(); row-- > 0 && without_stream > 0;) {
    const bool is_block = rows.IsBlock(row);
    if (!is_block || rows.device[row] != device || rows.birth[row] > step) continue;
    if ((rows.flags[row] & kRowHasStream) != 0) without_stream -= NoteStream(rows, row, pieces);
  }
}

// Adds the blocks that are held or pending after `step`.
void PlaceBlocks(const Trace& trace, int32_t device, Step step, std::vector<Piece>& pieces) {
  if (pieces.empty()) return;
  const Rows& rows = trace.rows;
  const RowId count = rows.count();
  for (RowId row = 0; row < count; ++row) {
    if (rows.death[row] <= step && rows.wait[row] == 0) continue;  // skips most rows early
    const bool live = rows.HeldAfter(row, step);
    if (!live && !rows.PendingAfter(row, step)) continue;
    if (!rows.IsBlock(row) || rows.device[row] != device) continue;
    Place(rows.address[row], rows.size[row], live, pieces);
  }
}

}  // namespace

std::string_view NameOf(PoolState::Kind kind) {
  static constexpr std::array<std::string_view, 3> kNames = {"small", "large", "private"};
  return kNames[kind];
}

std::vector<PoolState> PoolsAfter(const Trace& trace, int32_t device, Step step) {
  std::vector<Piece> pieces = Pieces(trace, device, step);
  PlaceBlocks(trace, device, step, pieces);
  std::array<PoolState, 3> pools;
  for (const Piece& piece : pieces) {
    PoolState& pool = pools[piece.pool];
    const uint64_t used = std::min(piece.size, piece.allocated + piece.pending);
    ++pool.segments;
    pool.blocks += piece.blocks;
    pool.reserved += piece.size;
    pool.allocated += piece.allocated;
    pool.pending += piece.pending;
    (used == 0 ? pool.releasable : pool.pinned) += piece.size - used;
  }
  std::vector<PoolState> used;
  for (size_t i = 0; i < pools.size(); ++i) {
    pools[i].kind = static_cast<PoolState::Kind>(i);
    if (pools[i].segments > 0) used.push_back(pools[i]);
  }
  return used;
}

std::vector<StreamMemory> MemoryByStream(const Trace& trace, int32_t device, Step step) {
  std::vector<Piece> pieces = Pieces(trace, device, step);
  NoteStreams(trace, device, step, pieces);
  PlaceBlocks(trace, device, step, pieces);
  std::map<uint64_t, StreamMemory> streams;
  for (const Piece& piece : pieces) {
    if (!piece.stream) continue;
    StreamMemory& stream = streams[*piece.stream];
    stream.device = device;
    stream.stream = *piece.stream;
    ++stream.segments;
    stream.reserved += piece.size;
    stream.allocated += std::min(piece.size, piece.allocated);
    stream.pending += std::min(piece.size - std::min(piece.size, piece.allocated), piece.pending);
  }
  std::vector<StreamMemory> found;
  for (const auto& [handle, stream] : streams) found.push_back(stream);
  std::stable_sort(found.begin(), found.end(), [](const StreamMemory& a, const StreamMemory& b) {
    return a.reserved > b.reserved;
  });
  return found;
}

}  // namespace gmt::analysis
