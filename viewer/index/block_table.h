// viewer/index/block_table.h
// BlockTable: the blocks of a recording by row, and for each axis their order by lane, duration and
// size, so that the blocks that a window can show are contiguous:
//
//
//   lane 0, class 24, size class 30   rows by birth     class = floor(log2(death - birth)) on the
//   lane 0, class 24, size class 21   rows by birth     axis (ns, events, 1/4096 steps).
//   lane 0, class 23, size class 30   ...               Size class = floor(log2(bytes))
//
// A block that is never freed counts as freed at the end, so what was allocated shortly before it
// is not among what was held all along. Durations within a class differ by less than
// a factor of two. The blocks of a cell that overlap a window are therefore in a contiguous range
// that contains at most about as many blocks that do not.
//
// Thread safety: const methods from any thread.

#ifndef GMT_VIEWER_INDEX_BLOCK_TABLE_H_
#define GMT_VIEWER_INDEX_BLOCK_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "viewer/index/axis_map.h"
#include "viewer/index/packed_column.h"
#include "viewer/index/tiles.h"

namespace gmt::viewer {

inline constexpr uint32_t kNeverFreed = UINT32_MAX;  // as analysis::kNever
inline constexpr size_t kAxes = 3;
inline constexpr double kStepUnits = 4096;  // units per step, for duration classes

constexpr double UnitOf(Axis axis) { return axis == Axis::kStep ? 1 / kStepUnits : 1; }

// floor(log2(duration)); 0 for durations below 1.
uint8_t ClassOfDuration(double duration);
// Returns how long a block lives on an axis.
double DurationOf(const AxisMap& axes, Axis axis, uint32_t birth, uint32_t death);
// Returns the duration class of a block on an axis.
uint8_t ClassOf(const AxisMap& axes, Axis axis, uint32_t birth, uint32_t death);

// [begin, end) of BlockOrder::rows.
struct Cell {
  uint32_t lane = 0;
  uint8_t duration = 0, size = 0;  // classes
  uint16_t unused = 0;
  uint32_t begin = 0, end = 0;
};

struct BlockOrder {
  std::vector<Cell> cells;  // lane ascending, then duration descending, then size descending
  PackedColumn rows;

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Items(cells);
    archive.Column(rows);
  }
};

struct BlockTable {
  // By row.
  PackedColumn birth, death, size, stack, forward_stack, stream, thread, dtype;
  PackedColumn pending;  // 1: freed, and waiting for other streams after that
  PackedColumn place;    // position in the lane's address space, plus 1; 0: none
  std::vector<uint32_t> key_of_stack;
  std::array<BlockOrder, kAxes> orders;  // by Axis

  uint32_t count() const { return static_cast<uint32_t>(birth.size()); }

  template <typename Archive>
  void Visit(Archive& archive) {
    for (PackedColumn* column : {&birth, &death, &size, &stack, &forward_stack, &stream, &thread,
                                 &dtype, &pending, &place}) {
      archive.Column(*column);
    }
    archive.Items(key_of_stack);
    for (BlockOrder& order : orders) archive.Item(order);
  }
};

// Sorts blocks into cells. The caller passes all rows by birth twice: first to Count(), then to
// Place().
class BlockOrderBuilder {
 public:
  explicit BlockOrderBuilder(uint32_t lanes) : counts_(size_t{lanes} * kClasses * kClasses) {}

  void Count(uint32_t lane, uint8_t duration, uint64_t bytes) {
    ++counts_[CellOf(lane, duration, bytes)];
  }
  void EndCounting();
  void Place(uint32_t lane, uint8_t duration, uint64_t bytes, uint32_t row) {
    rows_[counts_[CellOf(lane, duration, bytes)]++] = row;
  }
  BlockOrder Finish();

 private:
  static constexpr size_t kClasses = 64;
  static size_t CellOf(uint32_t lane, uint8_t duration, uint64_t bytes);

  std::vector<uint32_t> counts_;  // after EndCounting(): where the next row goes
  std::vector<Cell> cells_;
  std::vector<uint32_t> rows_;
};

// A block to be laid out: live at the peaks of the columns [first, last).
struct Candidate {
  uint32_t row = 0;
  uint32_t birth = 0;
  uint16_t first = 0, last = 0;
  uint8_t category = 0;  // code; set by the caller of FindCandidates()
  double bytes = 0;
};

// Selects the blocks of one lane that live at least as long as a column is wide and are live at the
// peak of a column, in stack order. If there are more than about `most`, those with the largest
// areas.
struct CandidateQuery {
  Axis axis = Axis::kEvent;
  uint32_t lane = 0;
  double from = 0;                   // where the first column begins
  double column = 0;                 // width
  std::span<const uint32_t> events;  // the columns' peaks, ascending
  uint32_t unknown = 0;              // columns at the beginning that show nothing
  double min_bytes = 0;              // minimum size
  uint32_t most = 0;
};
std::vector<Candidate> FindCandidates(const BlockTable& blocks, const AxisMap& axes,
                                      const CandidateQuery& query);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_BLOCK_TABLE_H_
