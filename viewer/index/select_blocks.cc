#include "viewer/index/select_blocks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "viewer/index/select_curve.h"
#include "viewer/index/stacked_layout.h"

namespace gmt::viewer {
namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();

class TileBuilder {
 public:
  TileBuilder(const IndexParts& parts, Axis axis, bool with_roles)
      : parts_(parts), axis_(axis), with_roles_(with_roles) {}

  void AddBlock(const Candidate& block, double place) {
    const BlockTable& blocks = parts_.blocks;
    const uint32_t row = block.row;
    const auto birth = static_cast<uint32_t>(blocks.birth[row]);
    const auto death = static_cast<uint32_t>(blocks.death[row]);
    const auto stack = static_cast<uint32_t>(blocks.stack[row]);
    const bool is_never = death == kNeverFreed;
    uint8_t flags = birth == 0 ? uint8_t{kFromBefore} : uint8_t{0};
    if (is_never) flags |= kNotFreed;
    if (blocks.pending[row] != 0) flags |= kPending;
    tile_.row.push_back(row);
    tile_.start.push_back(parts_.axes.PositionOf(axis_, birth));
    tile_.end.push_back(is_never ? kNoEnd : parts_.axes.PositionOf(axis_, death));
    tile_.size.push_back(static_cast<double>(blocks.size[row]));
    tile_.place.push_back(place);
    tile_.first.push_back(block.first);
    tile_.last.push_back(block.last);
    tile_.stack.push_back(stack);
    tile_.forward_stack.push_back(static_cast<uint32_t>(blocks.forward_stack[row]));
    tile_.key.push_back(stack < blocks.key_of_stack.size() ? blocks.key_of_stack[stack] : 0);
    tile_.category.push_back(block.category);
    tile_.stream.push_back(static_cast<uint16_t>(blocks.stream[row]));
    tile_.thread.push_back(static_cast<uint16_t>(blocks.thread[row]));
    tile_.dtype.push_back(static_cast<uint16_t>(blocks.dtype[row]));
    tile_.role.push_back(with_roles_ ? static_cast<uint8_t>(parts_.row_role[row]) : uint8_t{0});
    tile_.flags.push_back(flags);
    tile_.run_begin.push_back(static_cast<uint32_t>(tile_.run_column.size()));
  }
  void AddRun(uint8_t category, std::span<const uint16_t> columns, std::span<const double> bytes) {
    tile_.row.push_back(kNoRow);
    for (std::vector<double>* column : {&tile_.start, &tile_.end, &tile_.size, &tile_.place}) {
      column->push_back(0);
    }
    tile_.first.push_back(0);
    tile_.last.push_back(0);
    tile_.stack.push_back(0);
    tile_.forward_stack.push_back(0);
    tile_.key.push_back(0);
    tile_.category.push_back(category);
    tile_.stream.push_back(0);
    tile_.thread.push_back(0);
    tile_.dtype.push_back(0);
    tile_.role.push_back(0);
    tile_.flags.push_back(0);
    tile_.run_begin.push_back(static_cast<uint32_t>(tile_.run_column.size()));
    tile_.run_column.insert(tile_.run_column.end(), columns.begin(), columns.end());
    tile_.run_bytes.insert(tile_.run_bytes.end(), bytes.begin(), bytes.end());
  }
  BlockTile Finish() {
    tile_.run_begin.push_back(static_cast<uint32_t>(tile_.run_column.size()));
    return std::move(tile_);
  }

 private:
  const IndexParts& parts_;
  const Axis axis_;
  const bool with_roles_;
  BlockTile tile_;
};

// Returns the number of blocks of the lane that are live at some time in the window.
uint64_t BlocksInWindow(const IndexParts& parts, uint32_t lane, const ColumnEvents& columns) {
  LeafCache leaves(parts.changes);
  CurveReader reader(leaves, parts.curves[lane], lane, CurveReader::Of::kLive);
  const uint64_t born = reader.BirthsUntil(columns.last.back());
  const uint64_t dead = reader.DeathsUntil(columns.first.front());
  return born > dead ? born - dead : 0;
}

std::vector<AddressSpace> SpacesOf(const IndexParts& parts, const BlockQuery& query,
                                   const ColumnEvents& columns) {
  std::vector<AddressSpace> result;
  const uint32_t first = columns.first.front(), last = columns.last.back();
  for (const Space& space : parts.spaces[query.window.lane].spaces) {
    AddressSpace& seen = result.emplace_back();
    seen.place = static_cast<double>(space.place);
    seen.size = static_cast<double>(space.size);
    seen.address = space.address;
    seen.label = space.label;
    for (const Life& life : space.lives) {
      if (life.birth > last || life.death <= first) continue;
      const double from = parts.axes.PositionOf(query.window.axis, life.birth);
      const double to =
          life.death == kNeverFreed ? kNoEnd : parts.axes.PositionOf(query.window.axis, life.death);
      // Lives less than a column apart look like one.
      if (!seen.lives.empty() && from - seen.lives.back().second < query.window.width()) {
        seen.lives.back().second = to;
      } else {
        seen.lives.emplace_back(from, to);
      }
    }
  }
  return result;
}

void AddStacked(std::span<const Candidate> candidates, const BlockQuery& query,
                const SelectLimits& limits, TileBuilder& tile) {
  const StackedView view = {query.window.columns, query.low, query.high,
                            (query.high - query.low) / query.rows};
  const StackedItems items = LayOutStacked(candidates, view, limits);
  for (size_t i = 0; i < items.candidate.size(); ++i) {
    if (items.candidate[i] != StackedItems::kRun) {
      tile.AddBlock(candidates[items.candidate[i]], 0);
      continue;
    }
    const size_t begin = items.run_begin[i], count = items.run_begin[i + 1] - begin;
    tile.AddRun(items.category[i], std::span(items.run_column).subspan(begin, count),
                std::span(items.run_bytes).subspan(begin, count));
  }
}

void AddByAddress(const IndexParts& parts, std::vector<Candidate> candidates,
                  const BlockQuery& query, const SelectLimits& limits, TileBuilder& tile) {
  const auto place_of = [&](const Candidate& block) {
    return static_cast<double>(parts.blocks.place[block.row]) - 1;
  };
  std::erase_if(candidates, [&](const Candidate& block) {
    const double place = place_of(block);
    return place < 0 || place >= query.high || place + block.bytes <= query.low;
  });
  if (candidates.size() > limits.blocks) {
    const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(limits.blocks);
    const auto area = [](const Candidate& block) {
      return block.bytes * (block.last - block.first);
    };
    std::nth_element(candidates.begin(), end, candidates.end(),
                     [&](const Candidate& a, const Candidate& b) { return area(a) > area(b); });
    candidates.erase(end, candidates.end());
  }
  for (const Candidate& block : candidates) tile.AddBlock(block, place_of(block));
}

}  // namespace

BlockTile SelectBlocksOf(const IndexParts& parts, const BlockQuery& query,
                         const SelectLimits& limits, bool with_categories) {
  const ColumnEvents columns = FindColumnEvents(parts, query.window);
  CandidateQuery wanted;
  wanted.axis = query.window.axis;
  wanted.lane = query.window.lane;
  wanted.from = query.window.from;
  wanted.column = query.window.width();
  wanted.events = columns.peak;
  const double start = parts.axes.PositionOf(wanted.axis, 0);
  wanted.unknown = static_cast<uint32_t>(
      std::lower_bound(columns.midpoints.begin(), columns.midpoints.end(), start) -
      columns.midpoints.begin());
  wanted.most = limits.candidates;
  const bool is_stacked = query.layout == Layout::kStacked;
  if (!is_stacked) wanted.min_bytes = (query.high - query.low) / query.rows;
  std::vector<Candidate> candidates = FindCandidates(parts.blocks, parts.axes, wanted);

  if (with_categories) {
    for (Candidate& block : candidates) {
      const uint64_t code = parts.row_category[block.row];
      if (code < parts.category_count) block.category = static_cast<uint8_t>(code);
    }
  }

  TileBuilder builder(parts, query.window.axis, with_categories);
  if (is_stacked) {
    AddStacked(candidates, query, limits, builder);
  } else {
    AddByAddress(parts, std::move(candidates), query, limits, builder);
  }
  BlockTile tile = builder.Finish();
  if (!is_stacked) tile.spaces = SpacesOf(parts, query, columns);
  const auto shown = static_cast<uint64_t>(
      std::count_if(tile.row.begin(), tile.row.end(), [](uint32_t row) { return row != kNoRow; }));
  const uint64_t in_window = BlocksInWindow(parts, query.window.lane, columns);
  tile.hidden = in_window > shown ? in_window - shown : 0;
  return tile;
}

}  // namespace gmt::viewer
