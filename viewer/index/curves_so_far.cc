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
  for (RowId row = rows_; row < row_count; ++row) {
    if (rows.birth[row] == 0) LaneOf(trace, row).before += rows.size[row];
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
      Held& lane = LaneOf(trace, step.row);
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

CurvesSoFar::Held& CurvesSoFar::LaneOf(const Trace& trace, RowId row) {
  const std::pair<int32_t, uint32_t> place = {trace.rows.device[row], trace.rows.heap[row]};
  if (last_ != nullptr && place == last_place_) return *last_;
  last_place_ = place;
  const bool has_room = lanes_.size() < kMaxLanes || lanes_.contains(place);
  last_ = has_room ? &lanes_[place] : &rest_;
  last_->most.resize(events_ / stretch_ + 1);
  return *last_;
}

void CurvesSoFar::EndStretch() {
  const size_t stretches = events_ / stretch_;
  const bool are_too_many = stretches == kMaxStretches;
  if (are_too_many) stretch_ *= 2;
  for (auto& [place, lane] : lanes_) {
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
  for (const auto& [place, lane] : lanes_) {
    const int64_t most = *std::max_element(lane.most.begin(), lane.most.end());
    peaks[place.first] = std::max(peaks[place.first], Bytes(lane.before, most));
  }
  const int32_t main = MainDevice(peaks);
  const auto place_of = [&](const auto& place) {
    return LanePlace{place.first, place.second,
                     place.second < heaps_.size() ? heaps_[place.second] : std::string_view()};
  };
  std::vector<std::pair<LanePlace, const Held*>> order;
  for (const auto& [place, lane] : lanes_) order.emplace_back(place_of(place), &lane);
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
