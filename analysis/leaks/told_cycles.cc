#include "analysis/leaks/told_cycles.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/loop/phases.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMostNames = 1 << 16, kMostOpen = 1 << 12;

Telling TellingOf(const std::string& kind) {
  if (kind == "Optimizer.step") return Telling::kOptimizerStep;
  if (kind == "Optimizer.zero_grad") return Telling::kZeroGrad;
  if (kind == "backward") return Telling::kBackward;
  return Telling::kNothing;
}

}  // namespace

uint32_t ToldCycles::OnEvent(const format::Event& event) {
  switch (event.kind) {
    case MARK:
      if (definitions_.string(event.name) != "step") return kNobody;
      return Fire(Find({Telling::kMark}, "mark step"));
    case RANGE_BEGIN:
      return OnRangeBegin(event);
    case RANGE_END:
      return OnRangeEnd(event);
    default:
      return kNobody;
  }
}

// A burst ends with the first birth that is not in the same optimizer.
uint32_t ToldCycles::OnBirth(uint32_t stack) {
  const uint64_t site = optimizers_.Of(stack);
  const uint64_t ended = std::exchange(bursting_, site);
  if (ended == 0 || ended == site) return kNobody;
  return Fire(Find({Telling::kOptimizerMemory, ended}, "memory of Optimizer.step"));
}

const ToldCycles::RangeName& ToldCycles::NameOfRange(const format::Event& begin) {
  if (names_.size() >= kMostNames) names_.clear();  // ranges may all have different names
  const auto [known, is_new] = names_.try_emplace({begin.name, begin.stack});
  RangeName& name = known->second;
  if (!is_new) return name;
  Range range;
  range.name = definitions_.string(begin.name);
  range.stack = begin.stack;
  name.source = NameOfStep(range.name);
  if (!name.source.empty()) {
    name.telling = Telling::kNamedRange;
  } else {
    name.source = KindOfRange(range, definitions_);
    name.telling = TellingOf(name.source);
  }
  return name;
}

uint32_t ToldCycles::OnRangeBegin(const format::Event& event) {
  const RangeName& name = NameOfRange(event);
  Open open;
  open.begin_t_ns = event.t_ns;
  uint32_t fired = kNobody;
  if (name.telling == Telling::kNamedRange) {
    const std::string source =
        event.domain == 0 ? absl::StrCat("range ", name.source)
                          : absl::StrCat("range ", name.source, " (",
                                         std::string(definitions_.string(event.domain)), ")");
    open.teller = Find(
        {Telling::kNamedRange, std::hash<std::string>()(name.source), event.domain, event.thread},
        source);
    if (open.teller != kNobody) {
      open.outermost = depth_[open.teller]++ == 0;
      if (open.outermost) fired = Fire(open.teller);
    }
  } else if (name.telling != Telling::kNothing) {
    open.teller = Find({name.telling, event.stack}, name.source);
  }
  if (event.has(format::kHasRange)) {
    if (open_.size() >= kMostOpen) open_.clear();
    open_[event.range] = open;
  } else {
    std::vector<Open>& nested = nested_[event.thread];
    if (nested.size() >= kMostOpen) nested.clear();
    nested.push_back(open);
  }
  return fired;
}

uint32_t ToldCycles::OnRangeEnd(const format::Event& event) {
  Open open;
  if (event.has(format::kHasRange)) {
    const auto found = open_.extract(event.range);
    if (!found) return kNobody;
    open = found.mapped();
  } else {
    std::vector<Open>& nested = nested_[event.thread];
    if (nested.empty()) return kNobody;
    open = nested.back();
    nested.pop_back();
  }
  if (open.teller == kNobody) return kNobody;
  Teller& teller = tellers_[open.teller];
  if (teller.telling != Telling::kNamedRange) return Fire(open.teller);
  depth_[open.teller] -= depth_[open.teller] > 0 ? 1 : 0;
  if (open.outermost && event.t_ns > open.begin_t_ns)
    teller.time_ns += static_cast<uint64_t>(event.t_ns) - static_cast<uint64_t>(open.begin_t_ns);
  return kNobody;
}

uint32_t ToldCycles::Find(const Key& key, const std::string& source) {
  const auto known = ids_.find(key);
  if (known != ids_.end()) return known->second;
  if (tellers_.size() >= kMostTellers) return kNobody;
  const auto id = static_cast<uint32_t>(tellers_.size());
  ids_.emplace(key, id);
  Teller& teller = tellers_.emplace_back();
  teller.telling = key.telling;
  teller.source = source;
  depth_.push_back(0);
  return id;
}

uint32_t ToldCycles::Fire(uint32_t id) {
  if (id == kNobody) return kNobody;
  ++tellers_[id].firings;
  tellers_[id].last = ++firings_;
  return id;
}

void ToldCycles::ForgetFirings() {
  for (Teller& teller : tellers_) teller.firings = teller.time_ns = 0;
}

uint32_t ToldCycles::Best() const {
  uint32_t best = kNobody;
  const auto weight = [](const Teller& t) {
    return t.telling == Telling::kNamedRange ? t.time_ns : t.firings;
  };
  for (uint32_t id = 0; id < tellers_.size(); ++id) {
    const Teller& of = tellers_[id];
    if (of.firings < 2) continue;
    if (best == kNobody || of.telling < tellers_[best].telling) {
      best = id;
      continue;
    }
    const Teller& so_far = tellers_[best];
    if (of.telling != so_far.telling) continue;
    if (std::pair(weight(of), of.last) > std::pair(weight(so_far), so_far.last)) best = id;
  }
  return best;
}

}  // namespace gmt::analysis
