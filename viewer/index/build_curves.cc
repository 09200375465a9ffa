// IndexBuilder: times, lanes and live memory.

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "viewer/index/index_builder.h"
#include "viewer/index/lane_names.h"

namespace gmt::viewer {
namespace {

using analysis::kDriverHeap;
using analysis::kHostDevice;
using analysis::RowId;
using analysis::Rows;
using analysis::StepRecord;
using analysis::Trace;

LanePlace PlaceOf(const Lane& lane) { return {lane.device, lane.heap, lane.heap_name}; }

std::optional<uint64_t> CapacityOf(const Trace& trace, int32_t device) {
  for (const analysis::GpuFacts& known : trace.devices) {
    if (static_cast<int32_t>(known.index) == device && known.total_bytes > 0) {
      return known.total_bytes;
    }
  }
  uint64_t most = 0;
  for (const analysis::DeviceSample& sample : trace.samples) {
    if (sample.device == device) most = std::max(most, sample.total_bytes);
  }
  if (most == 0) return std::nullopt;
  return most;
}

}  // namespace

void IndexBuilder::BuildTimes() {
  PackedColumnBuilder times;
  times.Add(0);
  int64_t latest = 0;
  for (size_t i = 0; i < trace_.steps.size(); ++i) {
    latest = std::max(latest, trace_.steps.TimeOf(i));
    times.Add(static_cast<uint64_t>(latest));
  }
  parts_.axes.SetTimes(times.Finish(), std::max(latest, trace_.end_t_ns));
}

// `last`: the kind of another row, which is likely to be the same.
uint16_t IndexBuilder::KindOf(RowId row, uint16_t last) {
  const Rows& rows = trace_.rows;
  const bool holds_blocks =
      rows.heap[row] == kDriverHeap && (rows.flags[row] & analysis::kRowHoldsBlocks) != 0;
  const Kind kind = {rows.device[row], rows.heap[row], holds_blocks};
  if (last < kinds_.size() && kinds_[last] == kind) return last;
  const auto [it, is_new] = kind_numbers_.try_emplace(kind, static_cast<uint16_t>(kinds_.size()));
  if (is_new && kinds_.size() < std::numeric_limits<uint16_t>::max()) {
    kinds_.push_back(kind);
  } else if (is_new) {
    it->second = static_cast<uint16_t>(kinds_.size() - 1);
  }
  return it->second;
}

void IndexBuilder::FindKinds() {
  std::vector<uint64_t> count;
  const Rows& rows = trace_.rows;
  kind_of_row_.resize(rows.count());
  uint16_t kind = 0;
  for (size_t row = 0, end = 0; row < rows.count(); row = end) {
    end = std::min({size_t{rows.count()}, rows.device.EndOfRun(row), rows.heap.EndOfRun(row),
                    rows.flags.EndOfRun(row)});
    kind = KindOf(static_cast<RowId>(row), kind);
    std::fill(&kind_of_row_[row], kind_of_row_.data() + end, kind);
    count.resize(kinds_.size());
    count[kind] += end - row;
  }
  std::map<std::pair<int32_t, uint32_t>, uint64_t> blocks;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    blocks[{kinds_[i].device, kinds_[i].heap}] += count[i];
  }
  while (blocks.size() > kMaxLanes) {  // keeps the largest
    blocks.erase(std::min_element(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {
      return a.second < b.second;
    }));
  }
  lane_of_kind_.assign(kinds_.size(), kNoCurve);
  for (const auto& [place, number] : blocks) {
    for (size_t i = 0; i < kinds_.size(); ++i) {
      if (std::pair(kinds_[i].device, kinds_[i].heap) != place) continue;
      lane_of_kind_[i] = static_cast<uint32_t>(parts_.lanes.size());
    }
    Lane lane;
    lane.device = place.first;
    lane.heap = place.second;
    lane.heap_name = lane.heap < trace_.heaps.size() ? trace_.heaps[lane.heap] : "";
    lane.label = LabelOf(PlaceOf(lane));
    lane.blocks = number;
    parts_.lanes.push_back(std::move(lane));
  }
}

template <typename Visit>
void IndexBuilder::ForEachChange(const Visit& visit) const {
  const Rows& rows = trace_.rows;
  const RowId row_count = rows.count();
  for (uint32_t event = 1; event <= parts_.events; ++event) {
    const StepRecord step = trace_.steps[event - 1];
    const bool counts = step.row < row_count &&
                        (step.is_death ? rows.death[step.row] : rows.birth[step.row]) == event;
    visit(event, counts ? step.row : analysis::kNoRow, step.is_death);
  }
}

void IndexBuilder::BuildChanges() {
  PackedColumnBuilder codes, sizes;
  codes.Add(0);
  sizes.Add(0);
  ForEachChange([&](uint32_t, RowId row, bool is_death) {
    const bool counts = row != analysis::kNoRow;
    codes.Add(counts ? 1 + 2 * uint64_t{kind_of_row_[row]} + (is_death ? 1 : 0) : 0);
    sizes.Add(counts ? trace_.rows.size[row] : 0);
  });
  parts_.changes.code = codes.Finish();
  parts_.changes.size = sizes.Finish();
}

void IndexBuilder::BuildCurves() {
  std::vector<Lane>& lanes = parts_.lanes;
  // The memory that holds blocks has a curve of its own for each device.
  std::map<int32_t, uint32_t> reserved;
  EventColumns& changes = parts_.changes;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    EventColumns::Group group = {lane_of_kind_[i], kNoCurve};
    if (kinds_[i].holds_blocks && group.live != kNoCurve) {
      const auto next = static_cast<uint32_t>(lanes.size() + reserved.size());
      group.reserved = reserved.try_emplace(kinds_[i].device, next).first->second;
    }
    changes.groups.push_back(group);
  }
  std::vector<LaneCurveBuilder> curves(lanes.size() + reserved.size());
  const Rows& rows = trace_.rows;
  const RowId row_count = rows.count();
  struct Start {
    uint64_t bytes = 0, blocks = 0;
  };
  std::vector<Start> starts(curves.size());
  for (RowId row = 0; row < row_count; ++row) {
    if (rows.birth[row] != 0) continue;
    const EventColumns::Group group = changes.groups[kind_of_row_[row]];
    for (const uint32_t curve : {group.live, group.reserved}) {
      if (curve == kNoCurve) continue;
      starts[curve].bytes += rows.size[row];
      ++starts[curve].blocks;
    }
  }
  for (size_t i = 0; i < curves.size(); ++i) curves[i].Start(starts[i].bytes, starts[i].blocks);

  ForEachChange([&](uint32_t event, RowId row, bool is_death) {
    if (row != analysis::kNoRow) {
      const EventColumns::Group group = changes.groups[kind_of_row_[row]];
      const uint64_t size = rows.size[row];
      for (const uint32_t curve : {group.live, group.reserved}) {
        if (curve == kNoCurve) continue;
        is_death ? curves[curve].Death(size) : curves[curve].Birth(size);
        if (event % kLeaf != 0) curves[curve].EndEvent(event);
      }
    }
    if (event % kLeaf != 0) return;
    for (LaneCurveBuilder& curve : curves) curve.EndEvent(event);
  });
  for (LaneCurveBuilder& curve : curves) parts_.curves.push_back(curve.Finish());

  parts_.reserved_curve.assign(lanes.size(), kNoCurve);
  for (size_t i = 0; i < lanes.size(); ++i) {
    Lane& lane = lanes[i];
    lane.peak_bytes = parts_.curves[i].peak();
    lane.peak_event = parts_.curves[i].peak_event();
    lane.end_bytes = parts_.curves[i].end();
    const auto curve = reserved.find(lane.device);
    if (HasBlocks(PlaceOf(lane)) && curve != reserved.end())
      parts_.reserved_curve[i] = curve->second;
  }
  OrderLanes();
  FindSamples();
}

void IndexBuilder::OrderLanes() {
  std::vector<Lane>& lanes = parts_.lanes;
  std::map<int32_t, uint64_t> peaks;
  for (const Lane& lane : lanes) {
    peaks[lane.device] = std::max(peaks[lane.device], lane.peak_bytes);
  }
  const int32_t main = MainDevice(peaks);
  const auto rank = [&](uint32_t index) { return RankOf(PlaceOf(lanes[index]), main); };
  std::vector<uint32_t> order(lanes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });

  std::vector<Lane> new_lanes;
  std::vector<LaneCurve> new_curves;
  std::vector<uint32_t> new_reserved, new_number(lanes.size());
  for (const uint32_t old : order) {
    new_number[old] = static_cast<uint32_t>(new_lanes.size());
    new_lanes.push_back(std::move(lanes[old]));
    new_curves.push_back(std::move(parts_.curves[old]));
    new_reserved.push_back(parts_.reserved_curve[old]);
  }
  for (size_t i = lanes.size(); i < parts_.curves.size(); ++i) {
    new_curves.push_back(std::move(parts_.curves[i]));
  }
  lanes = std::move(new_lanes);
  parts_.curves = std::move(new_curves);
  parts_.reserved_curve = std::move(new_reserved);
  for (uint32_t& lane : lane_of_kind_) {
    if (lane != kNoCurve) lane = new_number[lane];
  }
  for (EventColumns::Group& group : parts_.changes.groups) {
    if (group.live != kNoCurve) group.live = new_number[group.live];
  }
}

// Collects the driver's samples, and determines from them which series a lane has.
void IndexBuilder::FindSamples() {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::map<int32_t, DeviceSamples> by_device;
  std::set<int32_t> with_process;
  for (const analysis::DeviceSample& sample : trace_.samples) {
    DeviceSamples& device = by_device[sample.device];
    device.device = sample.device;
    DriverSample recorded;
    recorded.event = std::min(sample.step, parts_.events);
    recorded.ns = static_cast<double>(sample.t_ns);
    if (!device.samples.empty()) {
      recorded.event = std::max(recorded.event, device.samples.back().event);
      recorded.ns = std::max(recorded.ns, device.samples.back().ns);
    }
    recorded.used = static_cast<double>(sample.used_bytes);
    recorded.process = sample.process_bytes ? static_cast<double>(*sample.process_bytes) : kUnknown;
    if (sample.process_bytes) with_process.insert(sample.device);
    device.samples.push_back(recorded);
  }
  for (auto& [number, device] : by_device) parts_.samples.push_back(std::move(device));
  for (size_t i = 0; i < parts_.lanes.size(); ++i) {
    Lane& lane = parts_.lanes[i];
    lane.series = {Series::kLive};
    if (parts_.reserved_curve[i] != kNoCurve) lane.series.push_back(Series::kReserved);
    if (lane.device == kHostDevice) continue;
    lane.capacity_bytes = CapacityOf(trace_, lane.device);
    if (by_device.contains(lane.device)) lane.series.push_back(Series::kDriverUsed);
    if (with_process.contains(lane.device)) lane.series.push_back(Series::kProcessUsed);
    lane.has_segments = parts_.reserved_curve[i] != kNoCurve;
  }
}

}  // namespace gmt::viewer
