#include "viewer/html/lane_series.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viewer/html/varint_columns.h"

namespace gmt::viewer {
namespace {

// Finds changes by zooming into each column of the index's answer that is not constant, down to
// single events.
class Changes {
 public:
  Changes(const ViewIndex& index, uint32_t lane, Series series)
      : index_(index), lane_(lane), series_(series) {}

  void Look(double from, double to) {
    const double events = to - from;
    const auto columns =
        static_cast<uint32_t>(std::min<double>(kMaxColumns, std::max(1.0, std::ceil(events))));
    const auto tile = index_.SelectCurve(
        {.lane = lane_, .axis = Axis::kEvent, .from = from, .to = to, .columns = columns});
    if (!tile.ok()) return;
    const CurveSeries* curve = nullptr;
    for (const CurveSeries& one : tile->series) {
      if (one.series == series_) curve = &one;
    }
    if (curve == nullptr) return;
    const double width = events / columns;
    for (uint32_t column = 0; column < columns; ++column) {
      const double begin = from + column * width;
      const bool level = curve->min[column] == curve->max[column] || std::isnan(curve->mid[column]);
      // If the column begins with unknown values, the change is found in the next column.
      const bool known = !std::isnan(curve->min[column]);
      if ((level && !(known && std::isnan(curve->mid[column]))) || width <= 1.0 ||
          events_.size() >= kMaxChanges) {
        Add(std::ceil(begin), curve->mid[column]);
      } else {
        // Columns are aligned to whole events, so that the recursion ends at single events.
        Look(std::floor(begin), std::ceil(begin + width));
      }
    }
  }

  void Write(std::string_view name, slab::Writer* writer) const {
    VarintDeltas event, value;
    for (double one : events_) event.Add(static_cast<uint64_t>(one));
    for (double one : values_) value.Add(static_cast<uint64_t>(one));
    const std::string prefix(name);
    writer->AddField(prefix + ".count", events_.size());
    writer->AddArray(prefix + ".event", event.bytes());
    writer->AddArray(prefix + ".value", value.bytes());
  }

 private:
  static constexpr size_t kMaxChanges = 100'000;

  void Add(double event, double value) {
    if (std::isnan(value)) return;
    if (!values_.empty() && (values_.back() == value || events_.back() >= event)) return;
    events_.push_back(event);
    values_.push_back(value);
  }

  const ViewIndex& index_;
  const uint32_t lane_;
  const Series series_;
  std::vector<double> events_, values_;
};

}  // namespace

void WriteSeries(const StandaloneFile& file, uint32_t lane, slab::Writer* writer) {
  auto names = nlohmann::ordered_json::array();
  for (Series series : file.index->lanes()[lane].series) {
    if (series == Series::kLive) continue;
    Changes changes(*file.index, lane, series);
    changes.Look(0, static_cast<double>(file.index->events()) + 1);
    changes.Write(NameOf(series), writer);
    names.push_back(NameOf(series));
  }
  writer->AddField("series", std::move(names));
}

}  // namespace gmt::viewer
