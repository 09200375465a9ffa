#include "analysis/trace/cross_check.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "analysis/trace/memory_event.h"
#include "analysis/trace/recorded_time.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {
namespace {

using format::Event;

// CUPTI's buffers arrive in any order, but never this late.
constexpr int64_t kLatest_ns = 30'000'000'000;
constexpr size_t kListedBeforeSorting = 8 * CrossCheck::kListed;

enum class Coverage : uint8_t { kNone, kPossible, kFull };

// Whether CUPTI's memory records cover an operation. It has none for cuMemCreate, imports and
// graphs; the handle of an array is not an address. CUPTI 13 reports registered memory and
// mappings (observed on an H200, driver 580), but no documentation says since when.
Coverage CoverageOf(const Event& event) {
  switch (event.kind) {
    case REGISTER:
    case UNREGISTER:
    case MAP:
    case UNMAP:
      return Coverage::kPossible;
    case ALLOC:
    case FREE:
      break;
    default:
      return Coverage::kNone;
  }
  switch (event.memory) {
    case DEVICE:
    case MANAGED:
    case PINNED:
    case POOL:
    case MEMORY_UNSPECIFIED:
      return Coverage::kFull;
    default:
      return Coverage::kNone;
  }
}

bool IsReturn(const Event& event) {
  return event.kind == FREE || event.kind == UNREGISTER || event.kind == UNMAP;
}

bool Earlier(const Unmatched& a, const Unmatched& b) { return a.t_ns < b.t_ns; }

}  // namespace

void CrossCheck::OnEvent(const Event& event) {
  switch (event.kind) {
    case ALLOC:
    case CREATE:
    case MAP:
    case IMPORT:
    case REGISTER:
    case FREE:
    case RELEASE:
    case UNMAP:
    case UNIMPORT:
    case UNREGISTER:
      if (!IsFrameworks(event.memory)) OnOurs(event);
      return;
    case FREE_DONE:
      if (!IsFrameworks(event.memory)) OnOurFreeDone(event);
      return;
    case WITNESS:
      return OnWitness(event);
    case SOURCE_CHANGE:
      return OnSource(event);
    default:
      return;
  }
}

void CrossCheck::OnOurs(const Event& event) {
  if (event.has(format::kHasResult) && event.result != 0) return;
  const Coverage coverage = CoverageOf(event);
  if (coverage == Coverage::kNone) {
    ++result_.not_covered;
    return;
  }
  if (!result_.was_made && result_.given_up > 0) {  // CUPTI reports nothing here
    ++result_.given_up;
    return;
  }
  Waiting ours;
  ours.what.side = Unmatched::kOnlyOurs;
  ours.what.is_free = IsReturn(event);
  ours.may_be_uncovered = coverage == Coverage::kPossible;
  ours.what.address = event.address;
  if (event.has(format::kHasSize)) ours.what.size = event.size;
  ours.what.t_ns = event.t_ns;
  ours.what.memory = event.memory;
  if (event.has(format::kHasDevice)) ours.what.device = event.device;
  ours.what.stack = event.stack;
  ours.what.api = event.api;
  ours.to_ns = event.t_ns;
  ours.from_ns = Before(event.t_ns, ours.what.is_free ? 0 : event.duration_ns);
  ours.thread = event.thread;
  const Key key{event.address, ours.what.is_free};
  if (!Match(witnesses_, key, ours)) Wait(ours_, key, ours);
}

// A free is reported before its call; this reports the call's end, or that the free failed.
void CrossCheck::OnOurFreeDone(const Event& event) {
  const auto known = ours_.waiting.find({event.address, true});
  if (known == ours_.waiting.end()) return;
  std::vector<Waiting>& waiting = known->second;
  const auto free = std::find_if(waiting.rbegin(), waiting.rend(),
                                 [&](const Waiting& w) { return w.thread == event.thread; });
  if (free == waiting.rend()) return;
  free->to_ns = std::max(free->to_ns, event.t_ns);
  if (!event.has(format::kHasResult) || event.result == 0) return;
  waiting.erase(std::next(free).base());
  --ours_.count;
  if (waiting.empty()) ours_.waiting.erase(known);
}

void CrossCheck::OnWitness(const Event& event) {
  const std::string_view action = definitions_.string(event.action);
  if (!result_.was_made) result_.from_ns = result_.to_ns = event.t_ns;
  result_.was_made = true;
  result_.from_ns = std::min(result_.from_ns, event.t_ns);
  result_.to_ns = std::max(result_.to_ns, event.t_ns);
  if (action != "alloc" && action != "free") {
    ++result_.pool_events;
    return;
  }
  // Memory without an address is that of the driver's own pools.
  if (event.memory == ARRAY || event.memory == MIPMAPPED || event.memory == MEMORY_UNSPECIFIED ||
      event.object == 0) {
    ++result_.not_comparable;
    return;
  }
  Waiting witness;
  witness.what.is_free = action == "free";
  witness.what.address = event.object;
  if (event.has(format::kHasValue)) witness.what.size = event.value;
  witness.what.t_ns = event.t_ns;
  witness.what.memory = event.memory;
  if (event.has(format::kHasDevice)) witness.what.device = event.device;
  witness.from_ns = witness.to_ns = event.t_ns;
  const Key key{event.object, witness.what.is_free};
  if (!Match(ours_, key, witness)) Wait(witnesses_, key, witness);
}

void CrossCheck::OnSource(const Event& event) {
  if (definitions_.string(event.name) != "cupti") return;
  const bool on = definitions_.string(event.text).starts_with("on");
  if (off_.empty()) off_.emplace_back(INT64_MIN, INT64_MAX);  // off until first reported to be on
  if (on && off_.back().second == INT64_MAX) off_.back().second = event.t_ns;
  if (!on && off_.back().second != INT64_MAX) off_.emplace_back(event.t_ns, INT64_MAX);
}

void CrossCheck::OnFacts(const Facts& facts) {
  for (const Setting& option : facts.options()) {
    if (option.name() == "heap") heaps_ = option.value();
  }
}

bool CrossCheck::IsLeftOut(const Unmatched& what) const {
  const std::string_view heap = what.memory == PINNED ? "host" : "driver";
  return !heaps_.empty() && heaps_ != "all" && heaps_.find(heap) == std::string::npos;
}

bool CrossCheck::Match(Side& side, const Key& key, const Waiting& other) {
  const auto known = side.waiting.find(key);
  if (known == side.waiting.end()) return false;
  std::vector<Waiting>& waiting = known->second;
  const auto same = std::find_if(waiting.begin(), waiting.end(), [&](const Waiting& w) {
    return w.from_ns <= After(other.to_ns, kClockError_ns) &&
           other.from_ns <= After(w.to_ns, kClockError_ns);
  });
  if (same == waiting.end()) return false;
  ++(key.is_free ? result_.frees : result_.allocations);
  const bool sized = same->what.size && other.what.size && !key.is_free;
  if (sized && *same->what.size != *other.what.size) ++result_.sizes_differ;
  waiting.erase(same);
  --side.count;
  if (waiting.empty()) side.waiting.erase(known);
  return true;
}

void CrossCheck::Wait(Side& side, const Key& key, const Waiting& waiting) {
  if (side.count >= kMaxWaiting) Shrink(side);
  side.waiting[key].push_back(waiting);
  ++side.count;
}

// Closes what CUPTI would have reported by now; if that is not enough, drops the whole side.
void CrossCheck::Shrink(Side& side) {
  const int64_t settled_ns = result_.was_made ? Before(result_.to_ns, kLatest_ns) : INT64_MIN;
  for (auto& [key, waiting] : side.waiting) {
    std::erase_if(waiting, [&](const Waiting& w) {
      const bool settled = w.to_ns < settled_ns;
      if (settled) Close(w), --side.count;
      return settled;
    });
  }
  if (side.count > kMaxWaiting / 2) {
    result_.given_up += side.count;
    side.waiting.clear();
    side.count = 0;
  }
  absl::erase_if(side.waiting, [](const auto& entry) { return entry.second.empty(); });
}

void CrossCheck::Close(const Waiting& waiting) {
  if (waiting.what.side == Unmatched::kOnlyCupti) {
    if (IsLeftOut(waiting.what)) {
      ++result_.not_recorded;
      return;
    }
    ++result_.only_cupti;
    return List(waiting.what);
  }
  if (waiting.may_be_uncovered) {
    ++result_.not_covered;
    return;
  }
  const bool off = std::any_of(off_.begin(), off_.end(), [&](const auto& period) {
    return waiting.from_ns <= period.second && period.first <= waiting.to_ns;
  });
  if (off || waiting.to_ns < Before(result_.from_ns, kClockError_ns)) {
    ++result_.while_off;
  } else if (waiting.from_ns > result_.to_ns) {
    ++result_.behind_the_last;
  } else {
    ++result_.only_ours;
    List(waiting.what);
  }
}

void CrossCheck::List(const Unmatched& what) {
  result_.first.push_back(what);
  if (result_.first.size() < kListedBeforeSorting) return;
  std::sort(result_.first.begin(), result_.first.end(), Earlier);
  result_.first.resize(kListed);
}

CrossCheckResult CrossCheck::Result() && {
  if (!result_.was_made) return {};
  for (const Side* side : {&ours_, &witnesses_}) {
    for (const auto& [key, waiting] : side->waiting) {
      for (const Waiting& w : waiting) Close(w);
    }
  }
  std::stable_sort(result_.first.begin(), result_.first.end(), [](const auto& a, const auto& b) {
    return std::tie(a.t_ns, a.address, a.side) < std::tie(b.t_ns, b.address, b.side);
  });
  if (result_.first.size() > kListed) result_.first.resize(kListed);
  return std::move(result_);
}

}  // namespace gmt::analysis
