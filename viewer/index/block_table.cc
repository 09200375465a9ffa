#include "viewer/index/block_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace gmt::viewer {
namespace {

uint8_t SizeClassOf(uint64_t bytes) {
  return bytes == 0 ? uint8_t{0} : static_cast<uint8_t>(std::bit_width(bytes) - 1);
}

// The range of entries of a cell whose births may overlap the window.
struct Stretch {
  const Cell* cell = nullptr;
  uint32_t begin = 0, end = 0;

  uint32_t count() const { return end - begin; }
};

// Returns the first entry in [begin, end) that was not born before `birth`.
uint32_t LowerBound(const BlockTable& blocks, const PackedColumn& rows, uint32_t begin,
                    uint32_t end, uint64_t birth) {
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (blocks.birth[rows[middle]] < birth) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

std::vector<Stretch> FindStretches(const BlockTable& blocks, const AxisMap& axes,
                                   const CandidateQuery& query) {
  const BlockOrder& order = blocks.orders[static_cast<size_t>(query.axis)];
  const double unit = UnitOf(query.axis);
  const double end_of_axis = axes.EndOf(query.axis);
  const uint8_t least = ClassOfDuration(query.column / unit);
  std::vector<Stretch> stretches;
  const auto first = std::partition_point(order.cells.begin(), order.cells.end(),
                                          [&](const Cell& cell) { return cell.lane < query.lane; });
  for (auto cell = first; cell != order.cells.end() && cell->lane == query.lane; ++cell) {
    if (cell->duration < least) break;
    if (std::ldexp(2, cell->size) <= query.min_bytes) continue;
    // Plus one unit, because classes round down.
    const double longest = (std::ldexp(2, cell->duration) + 1) * unit;
    const double position = std::min(query.from, end_of_axis) - longest;
    const uint64_t from = position > 0 ? axes.EventAt(query.axis, position) : 0;
    Stretch stretch{&*cell, 0, 0};
    const uint32_t end = static_cast<uint32_t>(std::min<uint64_t>(cell->end, order.rows.size()));
    stretch.begin = LowerBound(blocks, order.rows, std::min(cell->begin, end), end, from);
    stretch.end =
        LowerBound(blocks, order.rows, stretch.begin, end, query.events.back() + uint64_t{1});
    if (stretch.count() > 0) stretches.push_back(stretch);
  }
  return stretches;
}

constexpr uint32_t kAhead = 32;  // number of blocks that are prefetched at a time

// Reads the rows of the entries from `next` on, and prefetches the columns that are needed next.
void ReadRows(const BlockTable& blocks, const PackedColumn& order, uint32_t next,
              std::span<uint32_t> rows) {
  const std::array<const PackedColumn*, 3> columns = {&blocks.birth, &blocks.death, &blocks.size};
  for (uint32_t& row : rows) {
    row = static_cast<uint32_t>(order[next++]);
    for (const PackedColumn* column : columns) column->PrefetchChunk(row);
  }
  for (const uint32_t row : rows) {
    for (const PackedColumn* column : columns) column->PrefetchWord(row);
  }
}

// Drops the cells whose blocks have the smallest area on the screen until at most `most` blocks are
// left. What is dropped is in no item and remains in the rest.
void KeepLargest(std::vector<Stretch>& stretches, uint32_t most, uint8_t longest) {
  uint64_t total = 0;
  for (const Stretch& stretch : stretches) total += stretch.count();
  if (total <= most) return;
  const auto area = [&](const Stretch& stretch) {
    return stretch.cell->size + std::min(stretch.cell->duration, longest);
  };
  std::vector<Stretch> by_area = stretches;
  std::stable_sort(by_area.begin(), by_area.end(),
                   [&](const Stretch& a, const Stretch& b) { return area(a) > area(b); });
  std::vector<const Cell*> kept;
  uint64_t left = most;
  for (const Stretch& stretch : by_area) {
    if (stretch.count() > left) continue;
    left -= stretch.count();
    kept.push_back(stretch.cell);
  }
  std::sort(kept.begin(), kept.end());
  std::erase_if(stretches, [&](const Stretch& stretch) {
    return !std::binary_search(kept.begin(), kept.end(), stretch.cell);
  });
}

// Sorts by birth, then row. Few bits differ, so a radix sort of three passes is enough.
void SortByBirth(std::span<Candidate> candidates, std::vector<Candidate>& scratch) {
  constexpr size_t kRadixFrom = 2048;
  constexpr int kBits = 11;
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.birth != b.birth ? a.birth < b.birth : a.row < b.row;
  };
  if (candidates.size() < kRadixFrom)
    return std::sort(candidates.begin(), candidates.end(), before);
  uint32_t least = UINT32_MAX, most = 0;
  for (const Candidate& candidate : candidates) {
    least = std::min(least, candidate.birth);
    most = std::max(most, candidate.birth);
  }
  scratch.resize(candidates.size());
  for (int shift = 0; shift < static_cast<int>(std::bit_width(most - least)); shift += kBits) {
    std::array<uint32_t, size_t{1} << kBits> starts = {};
    const auto digit = [&](const Candidate& candidate) {
      return (candidate.birth - least) >> shift & ((1u << kBits) - 1);
    };
    for (const Candidate& candidate : candidates) ++starts[digit(candidate)];
    uint32_t start = 0;
    for (uint32_t& count : starts) start += std::exchange(count, start);
    for (const Candidate& candidate : candidates) scratch[starts[digit(candidate)]++] = candidate;
    std::copy(scratch.begin(), scratch.end(), candidates.begin());
  }
  // Only blocks held from before the recording have equal births.
  const auto from_before = std::find_if(candidates.begin(), candidates.end(),
                                        [](const Candidate& c) { return c.birth > 0; });
  std::sort(candidates.begin(), from_before, before);
}

}  // namespace

uint8_t ClassOfDuration(double duration) {
  return duration < 1 ? uint8_t{0} : static_cast<uint8_t>(std::min(std::ilogb(duration), 63));
}

double DurationOf(const AxisMap& axes, Axis axis, uint32_t birth, uint32_t death) {
  const double end = death == kNeverFreed ? axes.EndOf(axis) : axes.PositionOf(axis, death);
  return end - axes.PositionOf(axis, birth);
}

uint8_t ClassOf(const AxisMap& axes, Axis axis, uint32_t birth, uint32_t death) {
  return ClassOfDuration(DurationOf(axes, axis, birth, death) / UnitOf(axis));
}

size_t BlockOrderBuilder::CellOf(uint32_t lane, uint8_t duration, uint64_t bytes) {
  return (lane * kClasses + (kClasses - 1 - duration)) * kClasses +
         (kClasses - 1 - SizeClassOf(bytes));
}

void BlockOrderBuilder::EndCounting() {
  uint32_t next = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const uint32_t count = std::exchange(counts_[i], next);
    if (count == 0) continue;
    Cell& cell = cells_.emplace_back();
    cell.lane = static_cast<uint32_t>(i / (kClasses * kClasses));
    cell.duration = static_cast<uint8_t>(kClasses - 1 - i / kClasses % kClasses);
    cell.size = static_cast<uint8_t>(kClasses - 1 - i % kClasses);
    cell.begin = next;
    cell.end = next += count;
  }
  rows_.resize(next);
}

BlockOrder BlockOrderBuilder::Finish() {
  PackedColumnBuilder rows;
  for (const uint32_t row : rows_) rows.Add(row);
  rows_ = {};
  return {std::move(cells_), rows.Finish()};
}

std::vector<Candidate> FindCandidates(const BlockTable& blocks, const AxisMap& axes,
                                      const CandidateQuery& query) {
  if (query.events.empty()) return {};
  std::vector<Stretch> stretches = FindStretches(blocks, axes, query);
  const double window = query.column * static_cast<double>(query.events.size());
  KeepLargest(stretches, query.most, ClassOfDuration(window / UnitOf(query.axis)));
  const BlockOrder& order = blocks.orders[static_cast<size_t>(query.axis)];
  const uint8_t exact_class = ClassOfDuration(query.column / UnitOf(query.axis));
  const auto column_of = [&](uint64_t event, auto from) {
    return std::lower_bound(from, query.events.end(), event);
  };
  const auto begin = query.events.begin() + query.unknown;
  std::vector<Candidate> candidates, scratch;
  size_t class_begin = 0;
  std::array<uint32_t, kAhead> rows;
  for (size_t s = 0; s < stretches.size(); ++s) {
    const Stretch& stretch = stretches[s];
    const uint8_t duration = stretch.cell->duration;
    auto first = begin;
    for (uint32_t next = stretch.begin; next < stretch.end; next += kAhead) {
      const uint32_t count = std::min(stretch.end - next, kAhead);
      ReadRows(blocks, order.rows, next, std::span(rows).first(count));
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t row = rows[i];
        const auto death = static_cast<uint32_t>(blocks.death[row]);
        if (death <= query.events.front()) continue;
        const auto birth = static_cast<uint32_t>(blocks.birth[row]);
        const auto bytes = static_cast<double>(blocks.size[row]);
        if (bytes < query.min_bytes) continue;
        if (duration == exact_class && DurationOf(axes, query.axis, birth, death) < query.column) {
          continue;
        }
        // Births ascend, so the search continues from its previous position.
        while (first != query.events.end() && *first < birth) ++first;
        const auto last =
            death > query.events.back() ? query.events.end() : column_of(death, first);
        if (first >= last) continue;
        candidates.push_back({row, birth, static_cast<uint16_t>(first - query.events.begin()),
                              static_cast<uint16_t>(last - query.events.begin()), 0, bytes});
      }
    }
    if (s + 1 < stretches.size() && stretches[s + 1].cell->duration == duration) continue;
    SortByBirth(std::span(candidates).subspan(class_begin), scratch);
    class_begin = candidates.size();
  }
  return candidates;
}

}  // namespace gmt::viewer
