#include "viewer/html/lane_series.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viewer/html/varint_columns.h"
#include "viewer/index/index_parts.h"

namespace gmt::viewer {
namespace {

// Finds the changes of reserved memory by zooming into each column of the index's answer that is
// not constant, down to single events.
class Changes {
 public:
  Changes(const ViewIndex& index, uint32_t lane) : index_(index), lane_(lane) {}

  void Look(double from, double to) {
    const double events = to - from;
    const auto columns =
        static_cast<uint32_t>(std::min<double>(kMaxColumns, std::max(1.0, std::ceil(events))));
    const auto tile = index_.SelectCurve(
        {.lane = lane_, .axis = Axis::kEvent, .from = from, .to = to, .columns = columns});
    if (!tile.ok()) return;
    const CurveSeries* curve = nullptr;
    for (const CurveSeries& one : tile->series) {
      if (one.series == Series::kReserved) curve = &one;
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

  void Write(slab::Writer* writer) const {
    VarintDeltas event, value;
    for (double one : events_) event.Add(static_cast<uint64_t>(one));
    for (double one : values_) value.Add(static_cast<uint64_t>(one));
    writer->AddField("reserved.count", events_.size());
    writer->AddArray("reserved.event", event.bytes());
    writer->AddArray("reserved.value", value.bytes());
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
  std::vector<double> events_, values_;
};

// Writes every sample, or if there are more than kMaxSamples, every second, third, ...
void WriteSamples(const std::vector<DriverSample>& samples, Series series, slab::Writer* writer) {
  constexpr size_t kMaxSamples = 100'000;
  const size_t step = samples.size() / (kMaxSamples + 1) + 1;
  VarintDeltas event, ns, value;
  size_t count = 0;
  for (size_t i = 0; i < samples.size(); i += step) {
    const double bytes = samples[i].ValueOf(series);
    if (std::isnan(bytes)) continue;
    event.Add(samples[i].event);
    ns.Add(static_cast<uint64_t>(std::max(0.0, samples[i].ns)));
    value.Add(static_cast<uint64_t>(bytes));
    ++count;
  }
  const std::string prefix(NameOf(series));
  writer->AddField(prefix + ".count", count);
  writer->AddArray(prefix + ".event", event.bytes());
  writer->AddArray(prefix + ".ns", ns.bytes());
  writer->AddArray(prefix + ".value", value.bytes());
}

}  // namespace

void WriteSeries(const StandaloneFile& file, uint32_t number, slab::Writer* writer) {
  const Lane& lane = file.index->lanes()[number];
  for (const Series series : lane.series) {
    if (series == Series::kLive) continue;
    if (series == Series::kReserved) {
      Changes changes(*file.index, number);
      changes.Look(0, static_cast<double>(file.index->events()) + 1);
      changes.Write(writer);
      continue;
    }
    for (const DeviceSamples& device : file.index->parts().samples) {
      if (device.device == lane.device) WriteSamples(device.samples, series, writer);
    }
  }
}

}  // namespace gmt::viewer
