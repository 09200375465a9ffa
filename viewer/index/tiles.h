// viewer/index/tiles.h
//
// What a window of a timeline shows: columns of bytes, and the blocks that are large enough to be
// visible. viewer/page/src/data/protocol.ts declares the same types for the page and documents the
// fields; viewer/server serializes them.
//
// Ownership: plain data. Units: bytes; positions on the axis of the query (Axis).

#ifndef GMT_VIEWER_INDEX_TILES_H_
#define GMT_VIEWER_INDEX_TILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::viewer {

enum class Axis : uint8_t { kTime, kEvent, kStep };
enum class Layout : uint8_t { kStacked, kAddress };

using analysis::kNoRow;
inline constexpr uint32_t kMaxColumns = 8192;
inline constexpr uint32_t kMaxBlocks = 30'000;

// `columns` columns of equal width from `from` to `to`. What a column shows is what is live at its
// peak: after the first of its events after which most bytes of the lane are live. Its event for
// translating positions between axes is the one at its midpoint.
struct Window {
  uint32_t lane = 0;
  Axis axis = Axis::kTime;
  double from = 0, to = 0;
  uint32_t columns = 0;

  double width() const { return (to - from) / columns; }  // of one column
  double EdgeOf(uint32_t column) const { return from + column * width(); }
  double MidpointOf(uint32_t column) const { return from + (column + 0.5) * width(); }
};

struct BlockQuery {
  Window window;
  Layout layout = Layout::kStacked;
  double low = 0, high = 0;  // bytes, or place in the lane's address space
  uint32_t rows = 0;         // pixels between them
};

enum class Series : uint8_t { kLive, kReserved, kDriverUsed, kProcessUsed };

// Returns the name used in protocol.ts.
constexpr std::string_view NameOf(Series series) {
  switch (series) {
    case Series::kLive:
      return "live";
    case Series::kReserved:
      return "reserved";
    case Series::kDriverUsed:
      return "driver_used";
    case Series::kProcessUsed:
      return "process_used";
  }
  return "";
}

struct CurveSeries {
  Series series = Series::kLive;
  std::vector<double> min, max, mid;  // by column; NaN: not known
};

// The last sample of each column, or of the columns before it: on the axis of time by the sample's
// own time, otherwise by its event. NaN before the first one.
struct SampledSeries {
  Series series = Series::kDriverUsed;
  std::vector<double> value, ns;
};

struct CurveTile {
  std::vector<uint32_t> event;  // at the midpoint of each column
  std::vector<uint32_t> peak;   // the event of the column's peak
  std::vector<double> ns;
  std::vector<CurveSeries> series;     // kLive, kReserved
  std::vector<SampledSeries> samples;  // kDriverUsed, kProcessUsed
  // At the peaks, [code * columns + column]; empty: not known yet.
  std::vector<double> categories;
};

// The event of the peak of each column, and whether the recording covers the column's midpoint.
struct ColumnPeaks {
  std::vector<uint32_t> event;  // ascending
  std::vector<bool> is_known;
  std::vector<uint32_t> first = {},
                        last = {};  // a column covers the states after these and between
};

enum BlockBits : uint8_t { kFromBefore = 1, kPending = 2, kNotFreed = 4 };

struct AddressSpace {
  double place = 0, size = 0;
  uint64_t address = 0;
  std::string label;
  std::vector<std::pair<double, double>> lives;
};

struct BlockTile {
  // By item.
  std::vector<uint32_t> row;  // kNoRow: a run
  std::vector<double> start, end, size, place;
  std::vector<uint16_t> first, last;  // columns [first, last) at whose peak it is live
  std::vector<uint32_t> stack, forward_stack, key;
  std::vector<uint8_t> category, flags;
  std::vector<uint8_t> role;  // analysis::AliveReason; kUnknown until categories are known
  std::vector<uint16_t> stream, thread, dtype;
  std::vector<uint32_t> run_begin;  // one more than there are items

  std::vector<uint16_t> run_column;
  std::vector<double> run_bytes;
  uint64_t hidden = 0;
  std::vector<AddressSpace> spaces;
};

// The memory of one heap on one device. LaneMeta in protocol.ts.
struct Lane {
  int32_t device = 0;  // analysis::kHostDevice: host memory
  uint32_t heap = 0;   // index into Trace::heaps
  std::string heap_name;
  std::string label;  // for display
  uint64_t blocks = 0;
  uint64_t peak_bytes = 0, end_bytes = 0;
  uint32_t peak_event = 0;
  std::optional<uint64_t> capacity_bytes;
  bool has_segments = false;
  std::vector<Series> series;
};

// Limits the work of one query; what exceeds them remains in the rest.
struct SelectLimits {
  uint32_t blocks = kMaxBlocks;          // items that are blocks
  uint32_t candidates = 60'000;          // blocks that are considered
  uint64_t column_updates = 15'000'000;  // of the heights of the stack
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_TILES_H_
