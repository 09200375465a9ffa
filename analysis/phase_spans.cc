#include "analysis/phase_spans.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {
namespace {

struct Interval {
  Step begin = 0, end = 0;
};

class SpanFinder {
 public:
  SpanFinder(const Trace& trace, const format::Definitions& definitions, StackPhases& stacks)
      : trace_(trace), definitions_(definitions), stacks_(stacks) {}

  PhaseSpans Find() && {
    FromRanges();
    found_.backward_told = !backward_.empty();
    found_.optimizer_told = !optimizer_.empty();
    if (!found_.backward_told || !found_.optimizer_told) FromStacks();
    Unite(backward_);
    Unite(optimizer_);
    found_.passes = static_cast<uint32_t>(backward_.size());
    LeaveClosures();
    Lay();
    return std::move(found_);
  }

 private:
  void FromRanges() {
    absl::flat_hash_map<uint32_t, std::string> kinds;  // of ranges without a name, by stack
    for (const Range& range : trace_.ranges) {
      const Interval interval{range.begin, std::min(range.end, trace_.last_step())};
      if (interval.begin >= interval.end) continue;
      if (range.name == "backward") {
        backward_.push_back(interval);
        continue;
      }
      std::string kind;
      if (range.name == "record_function") {
        const auto [known, is_new] = kinds.try_emplace(range.stack);
        if (is_new) known->second = KindOfRange(range, definitions_);
        kind = known->second;
      } else {
        kind = KindOfRange(range, definitions_);
      }
      if (kind == "Optimizer.step") optimizer_.push_back(interval);
    }
  }

  // Of phases that no range told: from the first allocation of one to the last before an allocation of
  // another. What has no stack belongs to whatever it stands in.
  void FromStacks() {
    std::vector<Interval> backward, optimizer;
    Phase inside = Phase::kOther;
    ForEachBirth(trace_, [&](Step step, RowId row) {
      const uint32_t stack = trace_.rows.stack[row];
      if (trace_.rows.heap[row] <= kHostHeap || stack == 0) return;
      const Phase phase = PhaseOf(stack);
      if (phase != Phase::kOther) {
        std::vector<Interval>& intervals = phase == Phase::kBackward ? backward : optimizer;
        if (phase != inside) intervals.push_back({step - 1, step});
        intervals.back().end = step;
      }
      inside = phase;
    });
    if (!found_.backward_told) backward_ = std::move(backward);
    if (!found_.optimizer_told) optimizer_ = std::move(optimizer);
  }

  Phase PhaseOf(uint32_t stack) {
    switch (stacks_.Of(stack)) {
      case StackPhase::kBackward:
      case StackPhase::kRecomputed:
        return Phase::kBackward;
      case StackPhase::kOptimizer:
        return Phase::kOptimizer;
      case StackPhase::kNone:
        break;
    }
    return Phase::kOther;
  }

  // Ranges of one kind lie in each other where they are entered anew from inside, and beside each
  // other on several threads.
  static void Unite(std::vector<Interval>& intervals) {
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    std::vector<Interval> united;
    for (const Interval& interval : intervals) {
      if (!united.empty() && interval.begin < united.back().end) {
        united.back().end = std::max(united.back().end, interval.end);
      } else {
        united.push_back(interval);
      }
    }
    intervals = std::move(united);
  }

  // optimizer.step(closure) runs forward and backward passes itself: what it does as an optimizer comes
  // behind the last of those.
  void LeaveClosures() {
    auto pass = backward_.begin();
    for (Interval& optimizer : optimizer_) {
      while (pass != backward_.end() && pass->begin < optimizer.begin) ++pass;
      for (; pass != backward_.end() && pass->end <= optimizer.end; ++pass)
        optimizer.begin = pass->end;
    }
    std::erase_if(optimizer_, [](const Interval& interval) { return interval.begin >= interval.end; });
  }

  void Add(Step begin, Step end, Phase phase, uint32_t pass) {
    if (begin < end) found_.spans.push_back({begin, end, phase, pass});
  }

  // The optimizers' intervals, and of the backward passes what they leave.
  void Lay() {
    auto optimizer = optimizer_.begin();
    for (uint32_t pass = 0; pass < backward_.size(); ++pass) {
      Interval rest = backward_[pass];
      for (; optimizer != optimizer_.end() && optimizer->begin < rest.end; ++optimizer) {
        Add(rest.begin, std::min(rest.end, optimizer->begin), Phase::kBackward, pass);
        Add(optimizer->begin, optimizer->end, Phase::kOptimizer, 0);
        rest.begin = std::max(rest.begin, optimizer->end);
      }
      Add(rest.begin, rest.end, Phase::kBackward, pass);
    }
    for (; optimizer != optimizer_.end(); ++optimizer) {
      Add(optimizer->begin, optimizer->end, Phase::kOptimizer, 0);
    }
    Separate();
  }

  // An optimizer that outlasts the pass that it began in reaches into the next one's time.
  void Separate() {
    std::sort(found_.spans.begin(), found_.spans.end(),
              [](const PhaseSpan& a, const PhaseSpan& b) { return a.begin < b.begin; });
    Step reached = 0;
    for (PhaseSpan& span : found_.spans) {
      span.begin = std::max(span.begin, reached);
      reached = std::max(reached, span.end);
    }
    std::erase_if(found_.spans, [](const PhaseSpan& span) { return span.begin >= span.end; });
  }

  const Trace& trace_;
  const format::Definitions& definitions_;
  StackPhases& stacks_;
  std::vector<Interval> backward_, optimizer_;
  PhaseSpans found_;
};

}  // namespace

PhaseSpans FindPhaseSpans(const Trace& trace, const format::Definitions& definitions,
                          StackPhases& stacks) {
  return SpanFinder(trace, definitions, stacks).Find();
}

std::vector<Step> BackwardBegins(const PhaseSpans& spans) {
  std::vector<Step> begins;
  for (const PhaseSpan& span : spans.spans) {
    if (span.phase == Phase::kBackward) begins.push_back(span.begin);
  }
  return begins;
}

Step EndOfForward(const Cycle& cycle, const std::vector<Step>& backward_begins) {
  const auto behind = std::lower_bound(backward_begins.begin(), backward_begins.end(), cycle.end);
  if (behind == backward_begins.begin()) return cycle.begin;
  return std::max(cycle.begin, *std::prev(behind));
}

}  // namespace gmt::analysis
