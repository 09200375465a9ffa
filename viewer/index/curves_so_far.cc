#include "viewer/index/curves_so_far.h"

#include <algorithm>

#include "viewer/index/lane_names.h"

namespace gmt::viewer {

using analysis::RowId;
using analysis::Rows;
using analysis::StepRecord;
using analysis::Trace;

namespace {

uint64_t Bytes(uint64_t before, int64_t since) {
  const uint64_t held = before + static_cast<uint64_t>(since);
  return static_cast<int64_t>(held) < 0 ? 0 : held;
}

}  // namespace

void CurvesSoFar::Take(const Trace& trace) {
  const Rows& rows = trace.rows;
  const RowId row_count = rows.count();
  heaps_ = trace.heaps;
  FindLanesOfRows(trace);
  for (RowId row = rows_; row < row_count; ++row) {
    if (rows.birth[row] == 0) held_[lane_of_row_[row]].before += rows.size[row];
  }
  while (events_ < trace.steps.size()) {
    // To the end of the stretch or of the events.
    const size_t end = std::min(trace.steps.size(), (events_ / stretch_ + 1) * stretch_);
    for (; events_ < end; ++events_) {
      const StepRecord step = trace.steps[events_];
      // Like the index (build_curves.cc), counts only events that agree with their rows.
      const bool counts =
          step.row < row_count &&
          (step.is_death ? rows.death[step.row] : rows.birth[step.row]) == events_ + 1;
      if (!counts) continue;
      Held& lane = held_[lane_of_row_[step.row]];
      const uint64_t size = rows.size[step.row];
      lane.since += step.is_death ? 0 - size : size;
      // A snapshot had reported the block ahead of its event.
      if (!step.is_death && step.row < rows_) lane.before -= size;
      lane.most.back() = std::max(lane.most.back(), lane.now());
    }
    if (events_ % stretch_ == 0) EndStretch();
  }
  rows_ = row_count;
}

void CurvesSoFar::FindLanesOfRows(const Trace& trace) {
  const Rows& rows = trace.rows;
  lane_of_row_.resize(rows.count());
  std::pair<int32_t, uint32_t> last;
  uint16_t number = 0;
  for (size_t row = rows_, end = 0; row < rows.count(); row = end) {
    end = std::min({size_t{rows.count()}, rows.device.EndOfRun(row), rows.heap.EndOfRun(row)});
    const std::pair<int32_t, uint32_t> place = {rows.device[row], rows.heap[row]};
    if (row == rows_ || place != last) number = NumberOf(last = place);
    std::fill(&lane_of_row_[row], lane_of_row_.data() + end, number);
  }
}

uint16_t CurvesSoFar::NumberOf(std::pair<int32_t, uint32_t> place) {
  const auto known = lanes_.find(place);
  if (known != lanes_.end()) return known->second;
  const auto number = static_cast<uint16_t>(lanes_.size());
  if (number == held_.size()) held_.emplace_back().most.resize(events_ / stretch_ + 1);
  if (number < kMaxLanes) lanes_[place] = number;
  return number;
}

void CurvesSoFar::EndStretch() {
  const size_t stretches = events_ / stretch_;
  const bool are_too_many = stretches == kMaxStretches;
  if (are_too_many) stretch_ *= 2;
  for (Held& lane : held_) {
    if (are_too_many) JoinStretches(lane.most);
    lane.most.push_back(lane.now());
  }
}

void CurvesSoFar::JoinStretches(std::vector<int64_t>& most) {
  for (size_t i = 0; i < most.size() / 2; ++i) most[i] = std::max(most[2 * i], most[2 * i + 1]);
  most.resize(most.size() / 2);
}

std::vector<CurvesSoFar::Lane> CurvesSoFar::Lanes(size_t count) const {
  std::map<int32_t, uint64_t> peaks;  // by device
  for (const auto& [place, number] : lanes_) {
    const Held& lane = held_[number];
    const int64_t most = *std::max_element(lane.most.begin(), lane.most.end());
    peaks[place.first] = std::max(peaks[place.first], Bytes(lane.before, most));
  }
  const int32_t main = MainDevice(peaks);
  const auto place_of = [&](const auto& place) {
    return LanePlace{place.first, place.second,
                     place.second < heaps_.size() ? heaps_[place.second] : std::string_view()};
  };
  std::vector<std::pair<LanePlace, const Held*>> order;
  for (const auto& [place, number] : lanes_) order.emplace_back(place_of(place), &held_[number]);
  std::sort(order.begin(), order.end(), [main](const auto& a, const auto& b) {
    return RankOf(a.first, main) < RankOf(b.first, main);
  });
  order.resize(std::min(order.size(), count));

  std::vector<Lane> lanes;
  for (const auto& [place, held] : order) {
    Lane& lane = lanes.emplace_back();
    lane.label = LabelOf(place);
    lane.bytes = Bytes(held->before, held->now());
    for (const int64_t most : held->most) lane.most.push_back(Bytes(held->before, most));
  }
  return lanes;
}

}  // namespace gmt::viewer
