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
#include "viewer/index/parallel_for.h"

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

// Assigns curves to kinds. Returns how many there are. `reserved`: by device, the curve of the
// memory that holds blocks.
size_t IndexBuilder::GroupCurves(std::map<int32_t, uint32_t>* reserved) {
  const size_t lanes = parts_.lanes.size();
  for (size_t i = 0; i < kinds_.size(); ++i) {
    EventColumns::Group group = {lane_of_kind_[i], kNoCurve};
    if (kinds_[i].holds_blocks && group.live != kNoCurve) {
      const auto next = static_cast<uint32_t>(lanes + reserved->size());
      group.reserved = reserved->try_emplace(kinds_[i].device, next).first->second;
    }
    parts_.changes.groups.push_back(group);
  }
  return lanes + reserved->size();
}

void IndexBuilder::AddStarts(std::vector<Start>& starts) const {
  const Rows& rows = trace_.rows;
  for (RowId row = 0, count = rows.count(); row < count; ++row) {
    if (rows.birth[row] != 0) continue;
    const EventColumns::Group group = parts_.changes.groups[kind_of_row_[row]];
    for (const uint32_t curve : {group.live, group.reserved}) {
      if (curve == kNoCurve) continue;
      starts[curve].bytes += rows.size[row];
      ++starts[curve].blocks;
    }
  }
}

// Adds the times of the events begin..end-1, none of which is before `latest`. Returns the last.
int64_t IndexBuilder::AddTimes(uint32_t begin, uint32_t end, int64_t latest,
                               PackedColumnBuilder& times) const {
  for (uint32_t event = begin; event < end; ++event) {
    if (event > 0) latest = std::max(latest, trace_.steps.TimeOf(event - 1));
    times.Add(static_cast<uint64_t>(latest));
  }
  return latest;
}

void IndexBuilder::BuildPart(CurvePart& part) const {
  const Rows& rows = trace_.rows;
  const RowId row_count = rows.count();
  const std::vector<EventColumns::Group>& groups = parts_.changes.groups;
  part.first_ns = part.begin == 0 ? 0 : trace_.steps.TimeOf(part.begin - 1);
  part.last_ns = AddTimes(part.begin, part.end, 0, part.times);
  for (uint32_t event = part.begin; event < part.end; ++event) {
    StepRecord step;
    if (event > 0) step = trace_.steps[event - 1];
    uint64_t code = 0, size = 0;
    // Counts only events that agree with their rows, so that curves and blocks agree.
    const bool counts = event > 0 && step.row < row_count &&
                        (step.is_death ? rows.death[step.row] : rows.birth[step.row]) == event;
    if (counts) {
      const uint16_t kind = kind_of_row_[step.row];
      code = 1 + 2 * uint64_t{kind} + (step.is_death ? 1 : 0);
      size = rows.size[step.row];
      for (const uint32_t changed : {groups[kind].live, groups[kind].reserved}) {
        if (changed == kNoCurve) continue;
        LaneCurveBuilder& curve = part.curves[changed];
        step.is_death ? curve.Death(size) : curve.Birth(size);
        if (event % kLeaf != 0) curve.EndEvent(event);
      }
    }
    part.codes.Add(code);
    part.sizes.Add(size);
    if (event % kLeaf != 0) continue;
    for (LaneCurveBuilder& curve : part.curves) curve.EndEvent(event);
  }
}

// Returns the values of a column of all parts, and frees those of the parts.
PackedColumn IndexBuilder::JoinColumn(std::vector<CurvePart>& parts,
                                      PackedColumnBuilder CurvePart::*column) {
  std::vector<const PackedColumnBuilder*> columns;
  for (const CurvePart& part : parts) columns.push_back(&(part.*column));
  PackedColumnBuilder joined;
  joined.Reserve(columns);
  for (CurvePart& part : parts) {
    joined.Append(part.*column, 0);
    part.*column = {};
  }
  return joined.Finish();
}

void IndexBuilder::JoinTimes(std::vector<CurvePart>& parts) {
  int64_t latest = 0;
  for (CurvePart& part : parts) {
    if (part.first_ns < latest) {  // threads have recorded events out of order
      part.times = {};
      part.last_ns = AddTimes(part.begin, part.end, latest, part.times);
    }
    latest = part.last_ns;
  }
  parts_.axes.SetTimes(JoinColumn(parts, &CurvePart::times), std::max(latest, trace_.end_t_ns));
}

void IndexBuilder::JoinCurves(const std::vector<Start>& starts,
                              const std::vector<CurvePart>& parts) {
  for (size_t i = 0; i < starts.size(); ++i) {
    LaneCurveBuilder curve(starts[i].bytes, starts[i].blocks);
    for (const CurvePart& part : parts) curve.Append(part.curves[i]);
    parts_.curves.push_back(curve.Finish());
  }
}

void IndexBuilder::BuildCurves(const std::function<void(double)>& done, uint32_t events_of_part) {
  FindKinds();
  std::map<int32_t, uint32_t> reserved;
  std::vector<Start> starts(GroupCurves(&reserved));
  std::vector<CurvePart> parts(parts_.events / events_of_part + 1);
  std::vector<std::function<void()>> tasks = {[&] { AddStarts(starts); }};
  for (uint32_t i = 0; i < parts.size(); ++i) {
    parts[i].begin = i * events_of_part;
    parts[i].end = parts[i].begin + std::min(events_of_part, parts_.events + 1 - parts[i].begin);
    parts[i].curves.resize(starts.size());
    tasks.push_back([this, &part = parts[i]] { BuildPart(part); });
  }
  ParallelFor(tasks, [&](size_t ended) {
    done(static_cast<double>(ended) / static_cast<double>(tasks.size()));
  });
  EventColumns& changes = parts_.changes;
  ParallelFor({[&] { JoinTimes(parts); },
               [&] { changes.size = JoinColumn(parts, &CurvePart::sizes); },
               [&] { changes.code = JoinColumn(parts, &CurvePart::codes); },
               [&] { JoinCurves(starts, parts); }},
              [](size_t) {});

  std::vector<Lane>& lanes = parts_.lanes;
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
    if (!sample.knows_use()) continue;
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
