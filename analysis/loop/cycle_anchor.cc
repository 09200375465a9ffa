#include "analysis/loop/cycle_anchor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/loop/call_runs.h"
#include "analysis/loop/cycle_births.h"
#include "analysis/median.h"
#include "analysis/stacks/frames.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMinFirings = 8;
constexpr double kScatter = 0.25;  // of the gaps, as standard deviation over mean
constexpr double kSpan = 0.5;      // of all steps, from the first firing to the last
constexpr double kSamePeriod = 0.1, kSameCount = 0.02;
constexpr double kBurst = 0.25;     // relative to the long gaps: shorter ones lie within a burst
constexpr size_t kSample = 512;     // gaps in the sample that decides whether all must be examined
constexpr double kLowWater = 0.25;  // of the range from the minimum to the maximum of a cycle
constexpr size_t kMaxAnchors = 64;  // anchors per loop that are examined closely
constexpr size_t kHeldBlock = size_t{1} << 12;  // states that are examined at a time

struct Recurring {
  uint32_t stack = 0;
  std::vector<Step> firings;
  double period = 0;
  Step burst_gap = 0;  // firings that followed within this many steps are omitted
};

constexpr double kNormalTenths = 2.563;  // standard deviations between the 10 % and the 90 %
                                         // quantile

// Whether a sample shows that ScatterOf() exceeds kScatter, as it does for most stacks. The
// sample's quantiles lie well inside the required ones, so the probability of an error is one in a
// hundred million.
bool IsScattered(const std::vector<Step>& firings) {
  if (firings.size() < 4 * kSample) return false;
  std::minstd_rand random;  // fixed seed, so that the answer is deterministic
  std::array<Step, kSample> gaps;
  for (Step& gap : gaps) {
    const size_t i = 1 + random() % (firings.size() - 1);
    gap = firings[i] - firings[i - 1];
  }
  std::sort(gaps.begin(), gaps.end());
  const double low = gaps[kSample / 5], middle = gaps[kSample * 3 / 5],
               high = gaps[kSample * 4 / 5];
  return (high - low) / kNormalTenths >= kScatter * std::max(middle, 1.0);
}

// The scatter of the gaps between firings, without the longest and shortest tenth, because a loop
// is interrupted occasionally.
double ScatterOf(std::vector<Step> gaps, double& period) {
  const auto at = [&](double quantile) {
    const auto rank = static_cast<std::ptrdiff_t>(quantile * static_cast<double>(gaps.size() - 1));
    std::nth_element(gaps.begin(), gaps.begin() + rank, gaps.end());
    return static_cast<double>(gaps[static_cast<size_t>(rank)]);
  };
  const double low = at(0.1), high = at(0.9);
  period = at(0.5);
  return (high - low) / kNormalTenths / std::max(period, 1.0);
}

// Finds the median, over cycles, of the level of held memory when a stack fires: 0 is the minimum
// of the cycle that ends, 1 its maximum. Takes the states in blocks, because those of a long
// recording are larger than the caches, and are as much as a third of its trace.
class LevelFinder {
 public:
  // `firings` must outlive it.
  explicit LevelFinder(const std::vector<Step>& firings) : firings_(firings) {}

  // `held`: the bytes held after the steps `first`, first + 1, .... Blocks must come in order.
  void Take(Step first, const std::vector<uint64_t>& held) {
    for (size_t at = 0; next_ < firings_.size() && at < held.size();) {
      const size_t fires = firings_[next_] - 1 - first;  // the state before its birth
      const size_t end = std::min(fires + 1, held.size());
      if (next_ > 0) Extend(held, at, end);
      at = end;
      if (fires >= held.size()) return;
      if (next_ > 0) levels_.push_back(LevelOf(held[fires]));
      low_ = high_ = held[fires];
      ++next_;
    }
  }
  double Level() && { return UpperMedian(std::move(levels_)); }

 private:
  void Extend(const std::vector<uint64_t>& held, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      low_ = std::min(low_, held[i]);
      high_ = std::max(high_, held[i]);
    }
  }
  double LevelOf(uint64_t now) const {
    const auto range = static_cast<double>(high_ - low_);
    return range > 0 ? static_cast<double>(now - low_) / range : 0;
  }

  const std::vector<Step>& firings_;
  size_t next_ = 0;              // firing
  uint64_t low_ = 0, high_ = 0;  // since the last firing
  std::vector<double> levels_;
};

class AnchorFinder {
 public:
  AnchorFinder(const Trace& trace, const RowKinds& kinds, const format::Definitions& definitions)
      : trace_(trace), kinds_(kinds), definitions_(definitions), births_(kinds) {}

  InferredCycles Find() && {
    CollectRecurring();
    GroupByPeriod();
    const Loop* loop = Choose();
    if (loop == nullptr) return {};
    return EndsOf(*loop);
  }

 private:
  using Loop = std::vector<const Recurring*>;

  void CollectRecurring() {
    std::vector<uint32_t> counts(definitions_.stack_count() + size_t{1});
    ForEachBirth(trace_, [&](Step, RowId row) {
      const uint32_t stack = trace_.rows.stack[row];  // undefined ids can have any value
      if (births_.Counts(row) && stack < counts.size()) ++counts[stack];
    });
    counts[0] = 0;  // births without a stack
    std::vector<Recurring> found(counts.size());
    for (size_t stack = 1; stack < counts.size(); ++stack) {
      if (counts[stack] >= kMinFirings) found[stack].firings.reserve(counts[stack]);
    }
    CallRuns runs(trace_, births_, definitions_);
    std::vector<Step> last(counts.size());
    Step run = 0;
    ForEachBirth(trace_, [&](Step step, RowId row) {
      if (!births_.Counts(row)) return;
      const uint32_t stack = trace_.rows.stack[row];
      if (runs.Begins(stack)) run = step;
      if (stack >= counts.size() || counts[stack] < kMinFirings) return;
      Recurring& of = found[stack];
      if (last[stack] >= run && !of.firings.empty()) {
        of.burst_gap = std::max(of.burst_gap, step - last[stack]);
      } else {
        of.firings.push_back(step);
      }
      last[stack] = step;
    });
    for (size_t stack = 1; stack < found.size(); ++stack) {
      if (found[stack].firings.empty()) continue;
      found[stack].stack = static_cast<uint32_t>(stack);
      Consider(std::move(found[stack]));
    }
  }
  void Consider(Recurring of) {
    if (of.firings.size() < kMinFirings) return;
    Recurring bursts = of;
    bursts.burst_gap = std::max(of.burst_gap, LeaveFirstOfBursts(bursts.firings));
    if (bursts.firings.size() < of.firings.size()) AddIfRegular(std::move(bursts));
    AddIfRegular(std::move(of));
  }
  void AddIfRegular(Recurring of) {
    if (of.firings.size() < kMinFirings) return;
    const Step span = of.firings.back() - of.firings.front();
    if (span < kSpan * trace_.last_step() || IsScattered(of.firings)) return;
    if (ScatterOf(GapsOf(of.firings), of.period) < kScatter && of.period > 1)
      recurring_.push_back(std::move(of));
  }
  static std::vector<Step> GapsOf(const std::vector<Step>& firings) {
    std::vector<Step> gaps;
    gaps.reserve(firings.size());
    for (size_t i = 1; i < firings.size(); ++i) gaps.push_back(firings[i] - firings[i - 1]);
    return gaps;
  }
  static Step LeaveFirstOfBursts(std::vector<Step>& firings) {
    std::vector<Step> gaps = GapsOf(firings);
    // A heap keeps the longest hundredth: most gaps are compared with a single element.
    const size_t longer = gaps.size() - gaps.size() * 99 / 100;
    std::partial_sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(longer), gaps.end(),
                      std::greater<>());
    const double least = kBurst * gaps[longer - 1];
    Step last = firings.front();
    size_t kept = 1;
    for (size_t i = 1; i < firings.size(); ++i) {
      if (firings[i] - last > least) firings[kept++] = firings[i];
      last = firings[i];
    }
    firings.resize(kept);
    return static_cast<Step>(least);
  }

  void GroupByPeriod() {
    std::stable_sort(recurring_.begin(), recurring_.end(),
                     [](const Recurring& a, const Recurring& b) { return a.period < b.period; });
    for (const Recurring& of : recurring_) {
      const auto same = std::find_if(loops_.begin(), loops_.end(), [&](const Loop& loop) {
        return FireInTurns(*loop.front(), of);
      });
      (same != loops_.end() ? *same : loops_.emplace_back()).push_back(&of);
    }
  }
  static bool FireInTurns(const Recurring& a, const Recurring& b) {
    if (b.period > a.period * (1 + kSamePeriod)) return false;
    const auto count_a = static_cast<double>(a.firings.size()),
               count_b = static_cast<double>(b.firings.size());
    if (std::abs(count_a - count_b) > 1 + kSameCount * count_a) return false;
    // Exactly one firing of b between two firings of a.
    size_t j = 0, once = 0;
    for (size_t i = 1; i < a.firings.size(); ++i) {
      size_t between = 0;
      for (; j < b.firings.size() && b.firings[j] < a.firings[i]; ++j)
        between += b.firings[j] >= a.firings[i - 1] ? 1 : 0;
      once += between == 1 ? 1 : 0;
    }
    return static_cast<double>(once) >= 0.95 * (count_a - 1) - 1;
  }

  // Whether two anchors were reached through different frames of the program.
  bool HasIndependentAnchors(const Loop& loop) const {
    const auto place = [&](const Recurring* of) {
      const std::vector<FrameText> frames = DescribeStack(definitions_, of->stack);
      const int own = OwnFrame(frames), leading = LeadingFrame(frames);
      if (own < 0) return std::string();
      return absl::StrCat(frames[static_cast<size_t>(own)].Name(), ":",
                          frames[static_cast<size_t>(own)].line, " ",
                          frames[static_cast<size_t>(leading)].Name());
    };
    const std::string first = place(loop.front());
    for (size_t i = 1; i < std::min(loop.size(), kMaxAnchors); ++i) {
      if (place(loop[i]) != first) return true;
    }
    return false;
  }

  // Loops are ordered by their periods.
  const Loop* Choose() const {
    std::vector<const Loop*> valid;
    size_t most = 0;
    for (const Loop& loop : loops_) {
      if (loop.size() < 2 || !HasIndependentAnchors(loop)) continue;
      valid.push_back(&loop);
      most = std::max(most, loop.size());
    }
    const auto chosen = std::find_if(valid.begin(), valid.end(),
                                     [&](const Loop* loop) { return 2 * loop->size() >= most; });
    return chosen == valid.end() ? nullptr : *chosen;
  }

  InferredCycles EndsOf(const Loop& loop) const {
    const std::vector<double> levels = LevelsOf(loop);
    const Recurring* lowest = nullptr;
    double least = kLowWater;
    for (size_t i = 0; i < levels.size(); ++i) {
      if (levels[i] < least || (lowest == nullptr && levels[i] <= least)) {
        lowest = loop[i];
        least = levels[i];
      }
    }
    if (lowest == nullptr) return {};
    InferredCycles found;
    found.source =
        absl::StrCat("stack ", lowest->stack, " and ", loop.size() - 1, " more that recur with it");
    for (const Step firing : lowest->firings) found.ends.push_back(firing - 1);
    found.stack = lowest->stack;
    found.burst_gap = lowest->burst_gap;
    return found;
  }

  // Returns the level of held memory when each of the first anchors fires.
  std::vector<double> LevelsOf(const Loop& loop) const {
    std::vector<LevelFinder> finders;
    for (size_t i = 0; i < std::min(loop.size(), kMaxAnchors); ++i) {
      finders.emplace_back(loop[i]->firings);
    }
    ForEachBlockOfHeld([&](Step first, const std::vector<uint64_t>& held) {
      for (LevelFinder& finder : finders) finder.Take(first, held);
    });
    std::vector<double> levels;
    for (LevelFinder& finder : finders) levels.push_back(std::move(finder).Level());
    return levels;
  }

  // Calls visit(first, held) with the bytes held after the steps `first`, first + 1, ...; step 0 is
  // the state before the first step.
  template <typename Visit>
  void ForEachBlockOfHeld(Visit visit) const {
    uint64_t live = 0;
    for (const RowId row : kinds_.from_before()) {
      if (births_.Counts(row)) live += trace_.rows.size[row];
    }
    std::vector<uint64_t> held = {live};
    held.reserve(kHeldBlock);
    Step first = 0;
    for (Step step = 1; step <= trace_.last_step(); ++step) {
      if (held.size() == kHeldBlock) {
        visit(first, held);
        held.clear();
        first = step;
      }
      const StepRecord record = trace_.steps[step - 1];
      if (record.row != kNoRow && births_.Counts(record.row))
        live += record.is_death ? -trace_.rows.size[record.row] : trace_.rows.size[record.row];
      held.push_back(live);
    }
    visit(first, held);
  }

  const Trace& trace_;
  const RowKinds& kinds_;
  const format::Definitions& definitions_;
  const Births births_;
  std::vector<Recurring> recurring_;
  std::vector<Loop> loops_;
};

}  // namespace

InferredCycles CyclesOfAnchors(const Trace& trace, const RowKinds& kinds,
                               const format::Definitions& definitions) {
  return AnchorFinder(trace, kinds, definitions).Find();
}

}  // namespace gmt::analysis
