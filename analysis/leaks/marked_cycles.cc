#include "analysis/leaks/marked_cycles.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/loop/phases.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMaxNames = 1 << 16, kMaxOpen = 1 << 12;

CycleSource CycleSourceOf(const std::string& kind) {
  if (kind == "Optimizer.step") return CycleSource::kOptimizerStep;
  if (kind == "Optimizer.zero_grad") return CycleSource::kZeroGrad;
  if (kind == "backward") return CycleSource::kBackward;
  return CycleSource::kNothing;
}

}  // namespace

uint32_t MarkedCycles::OnEvent(const format::Event& event) {
  switch (event.kind) {
    case MARK:
      if (definitions_.string(event.name) != "step") return kNoMarker;
      return Fire(Find({CycleSource::kMark}, "mark step"));
    case RANGE_BEGIN:
      return OnRangeBegin(event);
    case RANGE_END:
      return OnRangeEnd(event);
    default:
      return kNoMarker;
  }
}

// A burst ends with the first birth that is not in the same optimizer.
uint32_t MarkedCycles::OnBirth(uint32_t stack) {
  const uint64_t site = optimizers_.Of(stack);
  const uint64_t ended = std::exchange(bursting_, site);
  if (ended == 0 || ended == site) return kNoMarker;
  return Fire(Find({CycleSource::kOptimizerMemory, ended}, "memory of Optimizer.step"));
}

const MarkedCycles::RangeName& MarkedCycles::NameOfRange(const format::Event& begin) {
  if (names_.size() >= kMaxNames) names_.clear();  // ranges may all have different names
  const auto [known, is_new] = names_.try_emplace({begin.name, begin.stack});
  RangeName& name = known->second;
  if (!is_new) return name;
  Range range;
  range.name = definitions_.string(begin.name);
  range.stack = begin.stack;
  name.source = NameOfStep(range.name);
  if (!name.source.empty()) {
    name.kind = CycleSource::kNamedRange;
  } else {
    name.source = KindOfRange(range, definitions_);
    name.kind = CycleSourceOf(name.source);
  }
  return name;
}

uint32_t MarkedCycles::OnRangeBegin(const format::Event& event) {
  const RangeName& name = NameOfRange(event);
  Open open;
  open.begin_t_ns = event.t_ns;
  uint32_t fired = kNoMarker;
  if (name.kind == CycleSource::kNamedRange) {
    const std::string source =
        event.domain == 0 ? absl::StrCat("range ", name.source)
                          : absl::StrCat("range ", name.source, " (",
                                         std::string(definitions_.string(event.domain)), ")");
    open.marker = Find({CycleSource::kNamedRange, std::hash<std::string>()(name.source),
                        event.domain, event.thread},
                       source);
    if (open.marker != kNoMarker) {
      open.outermost = depth_[open.marker]++ == 0;
      if (open.outermost) fired = Fire(open.marker);
    }
  } else if (name.kind != CycleSource::kNothing) {
    open.marker = Find({name.kind, event.stack}, name.source);
  }
  if (event.has(format::kHasRange)) {
    if (open_.size() >= kMaxOpen) open_.clear();
    open_[event.range] = open;
  } else {
    std::vector<Open>& nested = nested_[event.thread];
    if (nested.size() >= kMaxOpen) nested.clear();
    nested.push_back(open);
  }
  return fired;
}

uint32_t MarkedCycles::OnRangeEnd(const format::Event& event) {
  Open open;
  if (event.has(format::kHasRange)) {
    const auto found = open_.extract(event.range);
    if (!found) return kNoMarker;
    open = found.mapped();
  } else {
    std::vector<Open>& nested = nested_[event.thread];
    if (nested.empty()) return kNoMarker;
    open = nested.back();
    nested.pop_back();
  }
  if (open.marker == kNoMarker) return kNoMarker;
  Marker& marker = markers_[open.marker];
  if (marker.kind != CycleSource::kNamedRange) return Fire(open.marker);
  depth_[open.marker] -= depth_[open.marker] > 0 ? 1 : 0;
  if (open.outermost && event.t_ns > open.begin_t_ns)
    marker.time_ns += static_cast<uint64_t>(event.t_ns) - static_cast<uint64_t>(open.begin_t_ns);
  return kNoMarker;
}

uint32_t MarkedCycles::Find(const Key& key, const std::string& source) {
  const auto known = ids_.find(key);
  if (known != ids_.end()) return known->second;
  if (markers_.size() >= kMaxMarkers) return kNoMarker;
  const auto id = static_cast<uint32_t>(markers_.size());
  ids_.emplace(key, id);
  Marker& marker = markers_.emplace_back();
  marker.kind = key.kind;
  marker.source = source;
  depth_.push_back(0);
  return id;
}

uint32_t MarkedCycles::Fire(uint32_t id) {
  if (id == kNoMarker) return kNoMarker;
  ++markers_[id].firings;
  markers_[id].last = ++firings_;
  return id;
}

void MarkedCycles::ForgetFirings() {
  for (Marker& marker : markers_) marker.firings = marker.time_ns = 0;
}

uint32_t MarkedCycles::Best() const {
  uint32_t best = kNoMarker;
  const auto weight = [](const Marker& t) {
    return t.kind == CycleSource::kNamedRange ? t.time_ns : t.firings;
  };
  for (uint32_t id = 0; id < markers_.size(); ++id) {
    const Marker& of = markers_[id];
    if (of.firings < 2) continue;
    if (best == kNoMarker || of.kind < markers_[best].kind) {
      best = id;
      continue;
    }
    const Marker& so_far = markers_[best];
    if (of.kind != so_far.kind) continue;
    if (std::pair(weight(of), of.last) > std::pair(weight(so_far), so_far.last)) best = id;
  }
  return best;
}

}  // namespace gmt::analysis
