// The curves of a window by column: live, reserved and used memory, and bytes by category.

#include "viewer/index/select_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace gmt::viewer {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

CurveSeries EmptySeries(Series kind, size_t columns) {
  return {kind, std::vector<double>(columns, kUnknown), std::vector<double>(columns, kUnknown),
          std::vector<double>(columns, kUnknown)};
}

// A series that is computed event by event.
struct CountedSeries {
  CurveSeries series;
  CurveReader reader;

  void Take(size_t column, const ColumnEvents& columns) {
    const LaneCurve::Extremes extremes = reader.Over(columns.first[column], columns.last[column]);
    series.min[column] = static_cast<double>(extremes.min);
    series.max[column] = static_cast<double>(extremes.max);
    series.mid[column] = static_cast<double>(reader.At(columns.middle[column]));
  }
};

SampledSeries SamplesOf(Series kind, const DeviceSamples& device, const Window& window,
                        const ColumnEvents& columns) {
  SampledSeries series = {kind, std::vector<double>(columns.count(), kUnknown),
                          std::vector<double>(columns.count(), kUnknown)};
  size_t next = 0;
  double value = kUnknown, ns = kUnknown;
  for (uint32_t c = 0; c < columns.count(); ++c) {
    if (!columns.is_known[c]) continue;
    const auto is_past = [&](const DriverSample& sample) {
      return window.axis == Axis::kTime ? sample.ns < window.EdgeOf(c + 1)
                                        : sample.event <= columns.last[c];
    };
    for (; next < device.samples.size() && is_past(device.samples[next]); ++next) {
      const double sampled = device.samples[next].ValueOf(kind);
      if (!std::isnan(sampled)) value = sampled, ns = device.samples[next].ns;
    }
    series.value[c] = value;
    series.ns[c] = ns;
  }
  return series;
}

// Follows the events of a lane and sums up bytes by category.
class CategoryReader {
 public:
  CategoryReader(const IndexParts& parts, uint32_t lane, LeafCache& leaves)
      : parts_(parts), lane_(lane), leaves_(leaves), live_(parts.category_count) {}

  const std::vector<uint64_t>& At(uint32_t event) {
    if (event / kLeaf != leaf_ || event < at_) StartLeaf(event / kLeaf);
    const LeafCache::Leaf& leaf = leaves_.Read(leaf_);
    for (; at_ < event; ++at_) Apply(leaf, (at_ + 1) % kLeaf);
    return live_;
  }
  void PrefetchChunk(uint32_t leaf) const {
    for (const PackedColumn& column : AtLeaf()) column.PrefetchChunk(leaf);
    parts_.event_category.PrefetchChunk(uint64_t{leaf} * kLeaf);
  }
  void PrefetchWords(uint32_t leaf) const {
    for (const PackedColumn& column : AtLeaf()) column.PrefetchWord(leaf);
    parts_.event_category.PrefetchWord(uint64_t{leaf} * kLeaf);
  }

 private:
  const std::vector<PackedColumn>& AtLeaf() const { return parts_.categories[lane_].at_leaf; }
  void StartLeaf(uint32_t leaf) {
    leaf_ = leaf;
    at_ = leaf * kLeaf;
    const std::vector<PackedColumn>& columns = AtLeaf();
    for (size_t code = 0; code < live_.size(); ++code) {
      live_[code] = code < columns.size() ? columns[code][leaf] : 0;
    }
    parts_.event_category.Read(leaf, codes_);
  }
  void Apply(const LeafCache::Leaf& leaf, uint32_t i) {
    const uint64_t change = leaf.codes[i];
    const auto& groups = parts_.changes.groups;
    if (change == 0 || (change - 1) / 2 >= groups.size()) return;
    if (groups[(change - 1) / 2].live != lane_ || codes_[i] >= live_.size()) return;
    uint64_t& bytes = live_[codes_[i]];
    bytes = (change - 1) % 2 == 0 ? bytes + leaf.sizes[i] : bytes - leaf.sizes[i];
  }

  const IndexParts& parts_;
  const uint32_t lane_;
  LeafCache& leaves_;
  uint32_t leaf_ = UINT32_MAX, at_ = 0;
  std::vector<uint64_t> live_;
  PackedColumn::Values codes_;
};

// The counted values of a lane, computed in one pass over the columns: the leaves of a column are
// read once for all series, while those of later columns are being prefetched.
class Counted {
 public:
  Counted(const IndexParts& parts, const ColumnEvents& columns, uint32_t lane)
      : parts_(parts), columns_(columns), lane_(lane), leaves_(parts.changes) {}

  void AddSeries(Series kind) {
    const bool is_live = kind == Series::kLive;
    const uint32_t curve = is_live ? lane_ : parts_.reserved_curve[lane_];
    if (curve >= parts_.curves.size()) return;
    const auto of = is_live ? CurveReader::Of::kLive : CurveReader::Of::kReserved;
    series_.push_back({EmptySeries(kind, columns_.count()),
                       CurveReader(leaves_, parts_.curves[curve], curve, of)});
  }
  void AddCategories() {
    categories_.emplace(parts_, lane_, leaves_);
    bytes_.assign(parts_.category_count * columns_.count(), 0);
  }

  void Count() {
    for (size_t c = 0; c < columns_.count(); ++c) {
      Prefetch(c);
      if (!columns_.is_known[c]) continue;
      for (CountedSeries& series : series_) series.Take(c, columns_);
      if (categories_) TakeCategories(c);
    }
  }

  std::vector<double> TakeBytes() { return std::move(bytes_); }
  CurveSeries* Find(Series kind) {
    for (CountedSeries& counted : series_) {
      if (counted.series.series == kind) return &counted.series;
    }
    return nullptr;
  }

 private:
  static constexpr size_t kAhead = 4;

  void Prefetch(size_t column) const {
    if (column + 2 * kAhead < columns_.count()) {
      leaves_.PrefetchChunk(columns_.middle[column + 2 * kAhead] / kLeaf);
      leaves_.PrefetchChunk(columns_.last[column + 2 * kAhead] / kLeaf);
      if (categories_) categories_->PrefetchChunk(columns_.peak[column + 2 * kAhead] / kLeaf);
    }
    if (column + kAhead < columns_.count()) {
      leaves_.PrefetchWords(columns_.middle[column + kAhead] / kLeaf);
      leaves_.PrefetchWords(columns_.last[column + kAhead] / kLeaf);
      if (categories_) categories_->PrefetchWords(columns_.peak[column + kAhead] / kLeaf);
    }
  }
  void TakeCategories(size_t column) {
    const std::vector<uint64_t>& live = categories_->At(columns_.peak[column]);
    for (size_t code = 0; code < live.size(); ++code) {
      bytes_[code * columns_.count() + column] = static_cast<double>(live[code]);
    }
  }

  const IndexParts& parts_;
  const ColumnEvents& columns_;
  const uint32_t lane_;
  LeafCache leaves_;
  std::vector<CountedSeries> series_;
  std::optional<CategoryReader> categories_;
  std::vector<double> bytes_;  // by category, then column
};

std::vector<double> MidpointsOf(const Window& window) {
  std::vector<double> midpoints(window.columns);
  for (uint32_t c = 0; c < window.columns; ++c) midpoints[c] = window.MidpointOf(c);
  return midpoints;
}

// Returns one more edge than there are columns.
std::vector<double> EdgesOf(const Window& window) {
  std::vector<double> edges(window.columns + size_t{1});
  for (uint32_t c = 0; c <= window.columns; ++c) edges[c] = window.EdgeOf(c);
  return edges;
}

std::vector<uint32_t> PeaksOf(const IndexParts& parts, const ColumnEvents& columns, uint32_t lane) {
  constexpr size_t kAhead = 4;
  LeafCache leaves(parts.changes);
  CurveReader live(leaves, parts.curves[lane], lane, CurveReader::Of::kLive);
  std::vector<uint32_t> peaks;
  for (size_t c = 0; c < columns.count(); ++c) {
    if (c + 2 * kAhead < columns.count())
      leaves.PrefetchChunk(columns.last[c + 2 * kAhead] / kLeaf);
    if (c + kAhead < columns.count()) leaves.PrefetchWords(columns.last[c + kAhead] / kLeaf);
    peaks.push_back(live.PeakOver(columns.first[c], columns.last[c]));
  }
  return peaks;
}

}  // namespace

ColumnEvents FindColumnEvents(const IndexParts& parts, const Window& window) {
  const AxisMap& axes = parts.axes;
  ColumnEvents columns;
  columns.midpoints = MidpointsOf(window);
  columns.middle = axes.EventsAt(window.axis, columns.midpoints);
  const std::vector<double> edges = EdgesOf(window);
  columns.first = axes.EventsAt(window.axis, edges);
  const double start = axes.PositionOf(window.axis, 0), end = axes.EndOf(window.axis);
  for (uint32_t c = 0; c < window.columns; ++c) {
    // The end of a column belongs to the next one: an event there is not in this column.
    uint32_t last = columns.first[c + 1];
    if (axes.PositionOf(window.axis, last) >= edges[c + 1]) {
      last = axes.EventAt(window.axis, std::nextafter(edges[c + 1], -INFINITY));
    }
    columns.last.push_back(std::max({last, columns.first[c], columns.middle[c]}));
    columns.is_known.push_back(columns.midpoints[c] >= start && columns.midpoints[c] <= end);
  }
  columns.first.pop_back();
  columns.peak = PeaksOf(parts, columns, window.lane);
  return columns;
}

CurveTile SelectCurveOf(const IndexParts& parts, const Window& window, bool with_categories) {
  const ColumnEvents columns = FindColumnEvents(parts, window);
  const Lane& lane = parts.lanes[window.lane];
  CurveTile tile;
  for (size_t c = 0; c < columns.count(); ++c) {
    tile.ns.push_back(window.axis == Axis::kTime
                          ? columns.midpoints[c]
                          : parts.axes.PositionOf(Axis::kTime, columns.middle[c]));
  }
  Counted counted(parts, columns, window.lane);
  for (const Series series : lane.series) {
    if (series == Series::kLive || series == Series::kReserved) counted.AddSeries(series);
  }
  if (with_categories) counted.AddCategories();
  counted.Count();
  for (const Series series : lane.series) {
    if (series == Series::kLive || series == Series::kReserved) {
      if (CurveSeries* found = counted.Find(series)) tile.series.push_back(std::move(*found));
      continue;
    }
    for (const DeviceSamples& device : parts.samples) {
      if (device.device != lane.device) continue;
      tile.samples.push_back(SamplesOf(series, device, window, columns));
    }
  }
  if (with_categories) tile.categories = counted.TakeBytes();
  tile.event = columns.middle;
  tile.peak = columns.peak;
  return tile;
}

}  // namespace gmt::viewer
