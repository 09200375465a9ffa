#include "viewer/index/lane_curve.h"

#include <algorithm>
#include <utility>

namespace gmt::viewer {
namespace {

constexpr uint32_t kFanOut = 4;

}  // namespace

void LaneCurveBuilder::EndLeaf() {
  if (!std::exchange(is_in_leaf_, false)) return;
  min_.Add(leaf_.min);
  max_.Add(leaf_.max);
  leaf_ = {};
}

void LaneCurveBuilder::EndEvent(uint32_t event) {
  if (event % kLeaf == 0) {
    EndLeaf();
    is_in_leaf_ = true;
    at_leaf_.Add(live_);
    births_column_.Add(births_);
    deaths_column_.Add(deaths_);
    leaf_.Add(live_);
  }
  if (!std::exchange(is_changed_, false)) return;
  leaf_.Add(live_);
  if (live_ > curve_.peak_) curve_.peak_ = live_, curve_.peak_event_ = event;
}

void LaneCurveBuilder::Append(const LaneCurveBuilder& part) {
  EndLeaf();
  const uint64_t before = live_ - kUnknown;
  at_leaf_.Append(part.at_leaf_, before);
  births_column_.Append(part.births_column_, births_);
  deaths_column_.Append(part.deaths_column_, deaths_);
  min_.Append(part.min_, before);
  max_.Append(part.max_, before);
  is_in_leaf_ = part.is_in_leaf_;
  if (is_in_leaf_) leaf_ = {part.leaf_.min + before, part.leaf_.max + before};
  const bool has_changes = part.curve_.peak_ != 0;
  if (has_changes && part.curve_.peak_ + before > curve_.peak_) {
    curve_.peak_ = part.curve_.peak_ + before;
    curve_.peak_event_ = part.curve_.peak_event_;
  }
  live_ += part.live_ - kUnknown;
  births_ += part.births_;
  deaths_ += part.deaths_;
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

const LeafCache::Leaf& LeafCache::Read(uint32_t number) {
  for (const Leaf& leaf : leaves_) {
    if (leaf.number == number) return leaf;
  }
  Leaf& leaf = leaves_[next_];
  next_ = (next_ + 1) % leaves_.size();
  leaf.number = number;
  events_.code.Read(number, leaf.codes);
  events_.size.Read(number, leaf.sizes);
  return leaf;
}

void LeafCache::PrefetchChunk(uint32_t number) const {
  events_.code.PrefetchChunk(uint64_t{number} * kLeaf);
  events_.size.PrefetchChunk(uint64_t{number} * kLeaf);
}

void LeafCache::PrefetchWords(uint32_t number) const {
  events_.code.PrefetchWord(uint64_t{number} * kLeaf);
  events_.size.PrefetchWord(uint64_t{number} * kLeaf);
}

CurveReader::CurveReader(LeafCache& leaves, const LaneCurve& curve, uint32_t id, Of of)
    : leaves_(leaves), curve_(curve), sign_(1 + 2 * leaves.events().groups.size()) {
  const std::vector<EventColumns::Group>& groups = leaves.events().groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    if ((of == Of::kLive ? groups[i].live : groups[i].reserved) != id) continue;
    sign_[1 + 2 * i] = 1;
    sign_[2 + 2 * i] = -1;
  }
}

const PackedColumn::Values& CurveReader::LiveIn(uint32_t leaf) {
  for (const States& states : states_) {
    if (states.leaf == leaf) return states.live;
  }
  States& states = states_[older_];
  older_ = 1 - older_;
  states.leaf = leaf;
  const LeafCache::Leaf& read = leaves_.Read(leaf);
  uint64_t live = curve_.at_leaf_[leaf];
  states.live[0] = live;
  for (uint32_t i = 1; i < kLeaf; ++i) {
    const int sign = read.codes[i] < sign_.size() ? sign_[read.codes[i]] : 0;
    live += sign > 0 ? read.sizes[i] : sign < 0 ? uint64_t{0} - read.sizes[i] : 0;
    states.live[i] = live;
  }
  return states.live;
}

uint64_t CurveReader::At(uint32_t event) {
  if (event % kLeaf == 0) return curve_.at_leaf_[event / kLeaf];
  return LiveIn(event / kLeaf)[event % kLeaf];
}

uint64_t CurveReader::CountUntil(const PackedColumn& at_leaf, uint32_t event, int sign) {
  const LeafCache::Leaf& leaf = leaves_.Read(event / kLeaf);
  uint64_t count = at_leaf[event / kLeaf];
  for (uint32_t i = 1; i <= event % kLeaf; ++i) {
    count += leaf.codes[i] < sign_.size() && sign_[leaf.codes[i]] == sign ? 1 : 0;
  }
  return count;
}

uint64_t CurveReader::BirthsUntil(uint32_t event) { return CountUntil(curve_.births_, event, 1); }

uint64_t CurveReader::DeathsUntil(uint32_t event) { return CountUntil(curve_.deaths_, event, -1); }

LaneCurve::Extremes CurveReader::OverEvents(uint32_t first, uint32_t last) {
  LaneCurve::Extremes extremes;
  const PackedColumn::Values& live = LiveIn(first / kLeaf);
  for (uint32_t i = first % kLeaf; i <= last % kLeaf; ++i) extremes.Add(live[i]);
  return extremes;
}

template <typename Visit>
void CurveReader::ForEachEntry(uint32_t first, uint32_t last, Visit visit) const {
  uint64_t low = first, high = uint64_t{last} + 1;
  for (size_t level = 0; level < curve_.levels_.size(); ++level) {
    const bool is_top = level + 1 == curve_.levels_.size();
    while (low < high && (is_top || low % kFanOut != 0)) visit(level, low++);
    while (low < high && high % kFanOut != 0) visit(level, --high);
    if (low >= high) break;
    low /= kFanOut;
    high /= kFanOut;
  }
}

LaneCurve::Extremes CurveReader::OverLeaves(uint32_t first, uint32_t last) const {
  LaneCurve::Extremes extremes;
  ForEachEntry(first, last, [&](size_t level, uint64_t i) {
    extremes.Add({curve_.levels_[level].min[i], curve_.levels_[level].max[i]});
  });
  return extremes;
}

// Returns the first of the leaves first..last whose maximum is `bytes`; any of them if there is
// none, because the levels are damaged.
uint32_t CurveReader::PeakLeaf(uint32_t first, uint32_t last, uint64_t bytes) const {
  uint64_t leaf = UINT64_MAX;
  ForEachEntry(first, last, [&](size_t level, uint64_t i) {
    if (curve_.levels_[level].max[i] != bytes) return;
    while (level-- > 0) {
      i *= kFanOut;
      const uint64_t end = i + kFanOut - 1;
      while (i < end && curve_.levels_[level].max[i] != bytes) ++i;
    }
    leaf = std::min(leaf, i);
  });
  return static_cast<uint32_t>(std::clamp<uint64_t>(leaf, first, last));
}

CurveReader::Peak CurveReader::PeakOfEvents(uint32_t first, uint32_t last) {
  const PackedColumn::Values& live = LiveIn(first / kLeaf);
  const auto begin = live.begin() + first % kLeaf, end = live.begin() + last % kLeaf + 1;
  const auto peak = std::max_element(begin, end);
  return {*peak, first + static_cast<uint32_t>(peak - begin)};
}

uint32_t CurveReader::PeakOver(uint32_t first, uint32_t last) {
  const uint32_t first_leaf = first / kLeaf, last_leaf = last / kLeaf;
  if (first_leaf == last_leaf) return PeakOfEvents(first, last).event;
  Peak peak = PeakOfEvents(first, first_leaf * kLeaf + kLeaf - 1);
  if (last_leaf - first_leaf > 1) {
    const uint64_t most = OverLeaves(first_leaf + 1, last_leaf - 1).max;
    if (most > peak.bytes) {
      const uint32_t begin = PeakLeaf(first_leaf + 1, last_leaf - 1, most) * kLeaf;
      peak = PeakOfEvents(begin, begin + kLeaf - 1);
    }
  }
  const Peak end = PeakOfEvents(last_leaf * kLeaf, last);
  return end.bytes > peak.bytes ? end.event : peak.event;
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
