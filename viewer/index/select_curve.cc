// What of a window is a line: what is live, reserved and used, by column, and what categories have.

#include "viewer/index/select_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace gmt::viewer {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

CurveSeries EmptySeries(Series kind, size_t columns) {
  return {kind, std::vector<double>(columns, kUnknown), std::vector<double>(columns, kUnknown),
          std::vector<double>(columns, kUnknown)};
}

CurveSeries LiveSeries(Series kind, CurveReader reader, const ColumnEvents& columns) {
  CurveSeries series = EmptySeries(kind, columns.count());
  for (size_t c = 0; c < columns.count(); ++c) {
    if (!columns.is_known[c]) continue;
    const LaneCurve::Extremes extremes = reader.Over(columns.first[c], columns.last[c]);
    series.min[c] = static_cast<double>(extremes.min);
    series.max[c] = static_cast<double>(extremes.max);
    series.mid[c] = static_cast<double>(reader.At(columns.middle[c]));
  }
  return series;
}

// What was said last holds until something else is.
CurveSeries SampledSeries(Series kind, const DeviceSamples& device, const ColumnEvents& columns) {
  CurveSeries series = EmptySeries(kind, columns.count());
  const auto value = [&](const DriverSample& sample) {
    return kind == Series::kDriverUsed ? sample.used : sample.process;
  };
  const auto take = [](double& into, double told, bool less) {
    if (std::isnan(told)) return;
    if (std::isnan(into) || (less ? told < into : told > into)) into = told;
  };
  size_t next = 0;
  double said = kUnknown;
  const auto advance = [&](uint32_t event, auto&& each) {
    for (; next < device.samples.size() && device.samples[next].event <= event; ++next) {
      if (!std::isnan(value(device.samples[next]))) said = value(device.samples[next]);
      each(said);
    }
  };
  for (size_t c = 0; c < columns.count(); ++c) {
    if (!columns.is_known[c]) continue;
    const auto note = [&](double told) {
      take(series.min[c], told, true);
      take(series.max[c], told, false);
    };
    advance(columns.first[c], [](double) {});
    note(said);
    advance(columns.middle[c], note);
    series.mid[c] = said;
    advance(columns.last[c], note);
  }
  return series;
}

// Goes along the events of a lane and adds up by category.
class CategoryReader {
 public:
  CategoryReader(const IndexParts& parts, uint32_t lane)
      : parts_(parts), lane_(lane), live_(parts.category_count) {}

  const std::vector<uint64_t>& At(uint32_t event) {
    if (event / kLeaf != leaf_ || event < at_) StartLeaf(event / kLeaf);
    for (; at_ < event; ++at_) Apply((at_ + 1) % kLeaf);
    return live_;
  }

 private:
  void StartLeaf(uint32_t leaf) {
    leaf_ = leaf;
    at_ = leaf * kLeaf;
    const std::vector<PackedColumn>& columns = parts_.categories[lane_].at_leaf;
    for (size_t code = 0; code < live_.size(); ++code) {
      live_[code] = code < columns.size() ? columns[code][leaf] : 0;
    }
    parts_.changes.code.Read(leaf, changes_);
    parts_.changes.size.Read(leaf, sizes_);
    parts_.event_category.Read(leaf, codes_);
  }
  void Apply(uint32_t i) {
    const uint64_t change = changes_[i];
    const auto& groups = parts_.changes.groups;
    if (change == 0 || (change - 1) / 2 >= groups.size()) return;
    if (groups[(change - 1) / 2].live != lane_ || codes_[i] >= live_.size()) return;
    uint64_t& bytes = live_[codes_[i]];
    bytes = (change - 1) % 2 == 0 ? bytes + sizes_[i] : bytes - sizes_[i];
  }

  const IndexParts& parts_;
  const uint32_t lane_;
  uint32_t leaf_ = UINT32_MAX, at_ = 0;
  std::vector<uint64_t> live_;
  PackedColumn::Values changes_, sizes_, codes_;
};

std::vector<double> CategoriesOf(const IndexParts& parts, uint32_t lane,
                                 const ColumnEvents& columns) {
  std::vector<double> result(parts.category_count * columns.count(), 0);
  CategoryReader reader(parts, lane);
  for (size_t c = 0; c < columns.count(); ++c) {
    if (!columns.is_known[c]) continue;
    const std::vector<uint64_t>& live = reader.At(columns.middle[c]);
    for (size_t code = 0; code < live.size(); ++code) {
      result[code * columns.count() + c] = static_cast<double>(live[code]);
    }
  }
  return result;
}

double EndOfAxis(const IndexParts& parts, Axis axis) {
  if (axis == Axis::kTime) return static_cast<double>(parts.end_ns);
  return parts.axes.PositionOf(axis, parts.events) + (axis == Axis::kEvent ? 1 : 0);
}

}  // namespace

ColumnEvents FindColumnMiddles(const IndexParts& parts, const Window& window) {
  const double width = (window.to - window.from) / window.columns;
  ColumnEvents columns;
  columns.width = width;
  columns.first_middle = window.from + width / 2;
  columns.middle = parts.axes.EventsAt(window.axis, columns.first_middle, width, window.columns);
  columns.first = {parts.axes.EventAt(window.axis, window.from)};
  columns.last = {parts.axes.EventAt(window.axis, std::nextafter(window.to, -INFINITY))};
  return columns;
}

ColumnEvents FindColumnEvents(const IndexParts& parts, const Window& window) {
  const AxisMap& axes = parts.axes;
  const double width = (window.to - window.from) / window.columns;
  ColumnEvents columns;
  columns.width = width;
  columns.first_middle = window.from + width / 2;
  columns.middle = axes.EventsAt(window.axis, columns.first_middle, width, window.columns);
  std::vector<uint32_t> edges = axes.EventsAt(window.axis, window.from, width, window.columns + 1);
  const double start = axes.PositionOf(window.axis, 0), end = EndOfAxis(parts, window.axis);
  for (uint32_t c = 0; c < window.columns; ++c) {
    // The column's end is the next one's: what happens there is not in this one.
    const double edge = window.from + width * static_cast<double>(c + 1);
    uint32_t last = edges[c + 1];
    if (axes.PositionOf(window.axis, last) >= edge) {
      last = axes.EventAt(window.axis, std::nextafter(edge, -INFINITY));
    }
    columns.last.push_back(std::max({last, edges[c], columns.middle[c]}));
    const double middle = columns.first_middle + width * static_cast<double>(c);
    columns.is_known.push_back(middle >= start && middle <= end);
  }
  edges.pop_back();
  columns.first = std::move(edges);
  return columns;
}

CurveTile SelectCurveOf(const IndexParts& parts, const Window& window, bool with_categories) {
  const ColumnEvents columns = FindColumnEvents(parts, window);
  const Lane& lane = parts.lanes[window.lane];
  CurveTile tile;
  for (size_t c = 0; c < columns.count(); ++c) {
    tile.ns.push_back(window.axis == Axis::kTime
                          ? columns.first_middle + columns.width * static_cast<double>(c)
                          : parts.axes.PositionOf(Axis::kTime, columns.middle[c]));
  }
  for (const Series series : lane.series) {
    const uint32_t curve =
        series == Series::kReserved ? parts.reserved_curve[window.lane] : window.lane;
    if (series == Series::kLive || series == Series::kReserved) {
      if (curve >= parts.curves.size()) continue;
      const auto of = series == Series::kLive ? CurveReader::Of::kLive : CurveReader::Of::kReserved;
      tile.series.push_back(
          LiveSeries(series, CurveReader(parts.changes, parts.curves[curve], curve, of), columns));
      continue;
    }
    for (const DeviceSamples& device : parts.samples) {
      if (device.device != lane.device) continue;
      tile.series.push_back(SampledSeries(series, device, columns));
    }
  }
  if (with_categories) tile.categories = CategoriesOf(parts, window.lane, columns);
  tile.event = columns.middle;
  return tile;
}

}  // namespace gmt::viewer
