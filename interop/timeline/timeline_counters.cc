#include "interop/timeline/timeline_counters.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/examination/replay.h"
#include "interop/profile/layer_selection.h"

namespace gmt::interop {
namespace {

using analysis::RowId;
using Point = Timeline::Point;

class TimelineCounter {
 public:
  // What is held when the recording begins is one point.
  void Hold(int64_t begin_ns, uint64_t bytes) {
    live_ += bytes;
    points_.assign(1, {begin_ns, live_});
  }
  void Change(int64_t t_ns, uint64_t bytes, bool is_death) {
    live_ = is_death ? live_ - bytes : live_ + bytes;
    points_.push_back({t_ns, live_});
  }
  std::vector<Point>& points() { return points_; }

 private:
  uint64_t live_ = 0;
  std::vector<Point> points_;
};

class CountersOfTrace {
 public:
  CountersOfTrace(const analysis::Trace& trace, const analysis::Categories& categories)
      : trace_(trace), categories_(categories) {}

  std::vector<Timeline::Counter> Make() {
    const analysis::Rows& rows = trace_.rows;
    const int64_t begin_ns = trace_.first_t_ns.value_or(0);
    for (RowId row = 0; row < rows.count(); ++row) {
      if (rows.birth[row] != 0) continue;
      ForEachCounterOf(row, [&](TimelineCounter& c) { c.Hold(begin_ns, rows.size[row]); });
    }
    for (const analysis::StepRecord& step : trace_.steps) {
      if (step.row == analysis::kNoRow) continue;
      ForEachCounterOf(step.row, [&](TimelineCounter& c) {
        c.Change(step.t_ns, rows.size[step.row], step.is_death);
      });
    }
    std::vector<Timeline::Counter> counters;
    for (auto& [key, counter] : counters_)
      counters.push_back({NameOfKey(key), std::move(counter.points())});
    AddSamples(counters);
    return counters;
  }

 private:
  enum Kind : uint8_t { kLive, kReserved, kCategory };
  struct Key {
    int32_t device;
    Kind kind;
    uint32_t number;  // the heap, or the category for kCategory
    auto operator<=>(const Key&) const = default;
  };

  template <typename Visit>
  void ForEachCounterOf(RowId row, const Visit& visit) {
    const analysis::Rows& rows = trace_.rows;
    const int32_t device = rows.device[row];
    visit(counters_[{device, kLive, rows.heap[row]}]);
    if ((rows.flags[row] & analysis::kRowHoldsBlocks) != 0)
      visit(counters_[{device, kReserved, 0}]);
    if (analysis::IsAllocated(rows, row)) {
      const auto category = static_cast<uint32_t>(categories_.Of(row).category);
      visit(counters_[{device, kCategory, category}]);
    }
  }

  std::string NameOfKey(const Key& key) const {
    const std::string device = DeviceLabel(key.device);
    switch (key.kind) {
      case kLive:
        return absl::StrCat(device, " ", trace_.heaps[key.number], " live");
      case kReserved:
        return absl::StrCat(device, " reserved");
      case kCategory:
        break;
    }
    return absl::StrCat(device, " ", TextOf(static_cast<analysis::Category>(key.number)));
  }

  void AddSamples(std::vector<Timeline::Counter>& counters) const {
    std::map<std::string, std::vector<Point>> samples;  // by name
    for (const analysis::DeviceSample& sample : trace_.samples) {
      const std::string device = DeviceLabel(sample.device);
      if (sample.knows_use()) {
        samples[absl::StrCat(device, " used (", sample.source, ")")].push_back(
            {sample.t_ns, sample.used_bytes});
      }
      if (sample.process_bytes) {
        samples[absl::StrCat(device, " used by this process (", sample.source, ")")].push_back(
            {sample.t_ns, *sample.process_bytes});
      }
    }
    for (auto& [name, points] : samples) counters.push_back({name, std::move(points)});
  }

  const analysis::Trace& trace_;
  const analysis::Categories& categories_;
  std::map<Key, TimelineCounter> counters_;
};

}  // namespace

std::vector<Timeline::Counter> TimelineCounters(const analysis::Trace& trace,
                                                const analysis::Categories& categories) {
  return CountersOfTrace(trace, categories).Make();
}

bool ThinOut(std::vector<Point>& points, size_t max_points) {
  if (points.size() <= max_points) return false;
  const size_t parts = std::max<size_t>(max_points / 4, 1);
  const auto less = [](const Point& a, const Point& b) { return a.bytes < b.bytes; };
  std::vector<Point> kept;
  for (size_t part = 0; part < parts; ++part) {
    const auto begin = points.begin() + static_cast<ptrdiff_t>(points.size() * part / parts);
    const auto end = points.begin() + static_cast<ptrdiff_t>(points.size() * (part + 1) / parts);
    const auto [least, most] = std::minmax_element(begin, end, less);
    auto chosen = {begin, std::min(least, most), std::max(least, most), end - 1};
    auto last = points.end();
    for (const auto point : chosen) {
      if (point != last) kept.push_back(*point);
      last = point;
    }
  }
  points = std::move(kept);
  return true;
}

}  // namespace gmt::interop
