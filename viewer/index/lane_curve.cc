#include "viewer/index/lane_curve.h"

#include <algorithm>
#include <utility>

namespace gmt::viewer {
namespace {

constexpr uint32_t kFanOut = 4;

}  // namespace

void LaneCurveBuilder::Start(uint64_t bytes, uint64_t blocks) {
  live_ = bytes;
  births_ = blocks;
  at_leaf_.Add(live_);
  births_column_.Add(births_);
  deaths_column_.Add(0);
  leaf_.Add(live_);
  curve_.peak_ = live_;
}

void LaneCurveBuilder::EndLeaf() {
  min_.Add(leaf_.min);
  max_.Add(leaf_.max);
  leaf_ = {};
}

void LaneCurveBuilder::EndEvent(uint32_t event) {
  if (event % kLeaf == 0) {
    EndLeaf();
    at_leaf_.Add(live_);
    births_column_.Add(births_);
    deaths_column_.Add(deaths_);
    leaf_.Add(live_);
  }
  if (!std::exchange(is_changed_, false)) return;
  leaf_.Add(live_);
  if (live_ > curve_.peak_) curve_.peak_ = live_, curve_.peak_event_ = event;
}

void LaneCurveBuilder::AddLevels() {
  curve_.levels_.push_back({min_.Finish(), max_.Finish()});
  while (curve_.levels_.back().min.size() > kFanOut) {
    PackedColumnBuilder min, max;
    const LaneCurve::Level& below = curve_.levels_.back();
    for (uint64_t first = 0; first < below.min.size(); first += kFanOut) {
      LaneCurve::Extremes extremes;
      for (uint64_t i = first; i < std::min(first + kFanOut, below.min.size()); ++i) {
        extremes.Add({below.min[i], below.max[i]});
      }
      min.Add(extremes.min);
      max.Add(extremes.max);
    }
    curve_.levels_.push_back({min.Finish(), max.Finish()});
  }
}

LaneCurve LaneCurveBuilder::Finish() {
  EndLeaf();
  AddLevels();
  curve_.end_ = live_;
  curve_.at_leaf_ = at_leaf_.Finish();
  curve_.births_ = births_column_.Finish();
  curve_.deaths_ = deaths_column_.Finish();
  return std::move(curve_);
}

CurveReader::CurveReader(const EventColumns& events, const LaneCurve& curve, uint32_t id, Of of)
    : events_(events), curve_(curve), sign_(1 + 2 * events.groups.size()) {
  for (size_t i = 0; i < events.groups.size(); ++i) {
    const EventColumns::Group& group = events.groups[i];
    if ((of == Of::kLive ? group.live : group.reserved) != id) continue;
    sign_[1 + 2 * i] = 1;
    sign_[2 + 2 * i] = -1;
  }
}

void CurveReader::ReadLeaf(uint32_t leaf) {
  if (leaf == leaf_) return;
  leaf_ = leaf;
  events_.code.Read(leaf, codes_);
  events_.size.Read(leaf, sizes_);
  uint64_t live = curve_.at_leaf_[leaf];
  live_[0] = live;
  for (uint32_t i = 1; i < kLeaf; ++i) {
    const int sign = codes_[i] < sign_.size() ? sign_[codes_[i]] : 0;
    live += sign > 0 ? sizes_[i] : sign < 0 ? uint64_t{0} - sizes_[i] : 0;
    live_[i] = live;
  }
}

uint64_t CurveReader::At(uint32_t event) {
  if (event % kLeaf == 0) return curve_.at_leaf_[event / kLeaf];
  ReadLeaf(event / kLeaf);
  return live_[event % kLeaf];
}

uint64_t CurveReader::BirthsUntil(uint32_t event) {
  ReadLeaf(event / kLeaf);
  uint64_t count = curve_.births_[event / kLeaf];
  for (uint32_t i = 1; i <= event % kLeaf; ++i) {
    count += codes_[i] < sign_.size() && sign_[codes_[i]] > 0 ? 1 : 0;
  }
  return count;
}

uint64_t CurveReader::DeathsUntil(uint32_t event) {
  ReadLeaf(event / kLeaf);
  uint64_t count = curve_.deaths_[event / kLeaf];
  for (uint32_t i = 1; i <= event % kLeaf; ++i) {
    count += codes_[i] < sign_.size() && sign_[codes_[i]] < 0 ? 1 : 0;
  }
  return count;
}

LaneCurve::Extremes CurveReader::OverEvents(uint32_t first, uint32_t last) {
  LaneCurve::Extremes extremes;
  ReadLeaf(first / kLeaf);
  for (uint32_t i = first % kLeaf; i <= last % kLeaf; ++i) extremes.Add(live_[i]);
  return extremes;
}

LaneCurve::Extremes CurveReader::OverLeaves(uint32_t first, uint32_t last) const {
  LaneCurve::Extremes extremes;
  uint64_t low = first, high = uint64_t{last} + 1;
  for (const LaneCurve::Level& level : curve_.levels_) {
    const auto add = [&](uint64_t i) { extremes.Add({level.min[i], level.max[i]}); };
    const bool is_top = &level == &curve_.levels_.back();
    while (low < high && (is_top || low % kFanOut != 0)) add(low++);
    while (low < high && high % kFanOut != 0) add(--high);
    if (low >= high) break;
    low /= kFanOut;
    high /= kFanOut;
  }
  return extremes;
}

LaneCurve::Extremes CurveReader::Over(uint32_t first, uint32_t last) {
  const uint32_t first_leaf = first / kLeaf, last_leaf = last / kLeaf;
  if (first_leaf == last_leaf) return OverEvents(first, last);
  LaneCurve::Extremes extremes = OverEvents(first, first_leaf * kLeaf + kLeaf - 1);
  if (last_leaf - first_leaf > 1) extremes.Add(OverLeaves(first_leaf + 1, last_leaf - 1));
  extremes.Add(OverEvents(last_leaf * kLeaf, last));
  return extremes;
}

}  // namespace gmt::viewer
