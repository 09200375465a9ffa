#include "analysis/loop/phase_spans.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/stacks/frames.h"

namespace gmt::analysis {
namespace {

struct Interval {
  Step begin = 0, end = 0;
};

class SpanFinder {
 public:
  SpanFinder(const Trace& trace, const format::Definitions& definitions)
      : trace_(trace), definitions_(definitions), stacks_(definitions) {}

  PhaseSpans Find() && {
    FromRanges();
    found_.backward_is_recorded = !backward_.empty();
    found_.optimizer_is_recorded = !optimizer_.empty();
    if (!found_.backward_is_recorded || !found_.optimizer_is_recorded) FromStacks();
    Unite(backward_);
    Unite(optimizer_);
    found_.passes = static_cast<uint32_t>(backward_.size());
    LeaveClosures();
    Lay();
    return std::move(found_);
  }

 private:
  void FromRanges() {
    absl::flat_hash_map<uint32_t, std::string> kinds;  // kinds of unnamed ranges, by stack
    for (const Range& range : trace_.ranges) {
      const Interval interval{range.begin, std::min(range.end, trace_.last_step())};
      if (interval.begin > interval.end) continue;
      const bool is_idle = interval.begin == interval.end;
      if (range.name == "backward") {
        if (!is_idle) backward_.push_back(interval);
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
      if (kind != "Optimizer.step") continue;
      if (is_idle) {
        found_.idle_optimizers.push_back(interval.begin);
      } else {
        optimizer_.push_back(interval);
      }
    }
    std::sort(found_.idle_optimizers.begin(), found_.idle_optimizers.end());
  }

  // Finds phases of kinds for which no range was recorded. A phase lasts from its first allocation
  // to the last one before an allocation of another phase. Memory without a stack belongs to the
  // phase around it. If all stacks are Python-only, it belongs to a backward pass, whose thread
  // runs no Python.
  void FromStacks() {
    std::vector<Interval> backward, optimizer;
    Phase inside = Phase::kOther;
    std::optional<bool> of_python;
    ForEachBirth(trace_, [&](Step step, RowId row) {
      if (trace_.rows.heap[row] <= kHostHeap) return;
      const uint32_t stack = trace_.rows.stack[row];
      if (stack == 0) {
        if (!of_python) of_python = HasStacksOfPythonAlone();
        if (!*of_python) return;
      }
      const Phase phase = stack == 0 ? Phase::kBackward : PhaseOf(stack);
      if (phase != Phase::kOther) {
        std::vector<Interval>& intervals = phase == Phase::kBackward ? backward : optimizer;
        if (phase != inside) intervals.push_back({step - 1, step});
        intervals.back().end = step;
      }
      inside = phase;
    });
    if (!found_.backward_is_recorded) backward_ = std::move(backward);
    if (!found_.optimizer_is_recorded) optimizer_ = std::move(optimizer);
  }

  bool HasStacksOfPythonAlone() const {
    // Ids in a damaged file may be arbitrary: those out of range are one stack without frames.
    std::vector<bool> seen(definitions_.stack_count() + size_t{2});
    bool any = false, native = false;
    ForEachBirth(trace_, [&](Step, RowId row) {
      const uint32_t stack = trace_.rows.stack[row];
      if (native || stack == 0 || trace_.rows.heap[row] <= kHostHeap) return;
      std::vector<bool>::reference is_seen = seen[std::min<size_t>(stack, seen.size() - 1)];
      if (is_seen) return;
      any = is_seen = true;
      for (const uint32_t frame : definitions_.StackFrames(stack))
        native |= definitions_.frame(frame).language != format::Language::kPython;
    });
    return any && !native;
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

  // Ranges of one kind are nested if they are re-entered, and overlap if several threads run them.
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

  // optimizer.step(closure) runs forward and backward passes itself; its own work comes after the
  // last of them.
  void LeaveClosures() {
    auto pass = backward_.begin();
    for (Interval& optimizer : optimizer_) {
      while (pass != backward_.end() && pass->begin < optimizer.begin) ++pass;
      for (; pass != backward_.end() && pass->end <= optimizer.end; ++pass)
        optimizer.begin = pass->end;
    }
    std::erase_if(optimizer_,
                  [](const Interval& interval) { return interval.begin >= interval.end; });
  }

  void Add(Step begin, Step end, Phase phase, uint32_t pass) {
    if (begin < end) found_.spans.push_back({begin, end, phase, pass});
  }

  // Adds the optimizers' intervals, and the parts of the backward passes outside them.
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

  // An optimizer that outlasts the pass in which it began overlaps the next pass.
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
  StackPhases stacks_;
  std::vector<Interval> backward_, optimizer_;
  PhaseSpans found_;
};

// Returns where backward passes begin, in order.
std::vector<Step> BackwardBegins(const PhaseSpans& spans) {
  std::vector<Step> begins;
  for (const PhaseSpan& span : spans.spans) {
    if (span.phase == Phase::kBackward) begins.push_back(span.begin);
  }
  return begins;
}

// Returns where the last backward pass of a step begins: what leads to it is the forward pass.
// Without a backward pass there is no forward pass, and the step's beginning is returned.
Step EndOfForward(const Cycle& cycle, const std::vector<Step>& backward_begins) {
  const auto behind = std::lower_bound(backward_begins.begin(), backward_begins.end(), cycle.end);
  if (behind == backward_begins.begin()) return cycle.begin;
  return std::max(cycle.begin, *std::prev(behind));
}

bool IsEvaluation(const FrameText& frame) {
  constexpr std::string_view kFunctions[] = {
      "evaluate",        "evaluation_loop", "eval_step",     "prediction_loop", "prediction_step",
      "validation_step", "validate",        "test_step",     "predict_step",    "validation_loop",
      "eval_loop",       "eval_epoch",      "run_validation"};
  const std::string_view function = frame.function;
  const std::string_view name = function.substr(function.rfind('.') + 1);
  return frame.is_python() &&
         std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

// Whether stacks pass through a function that evaluates a model. Each frame is examined once.
class EvaluationStacks {
 public:
  explicit EvaluationStacks(const format::Definitions& definitions) : definitions_(definitions) {}

  bool Of(uint32_t stack) {
    const auto [known, is_new] = stacks_.try_emplace(stack);
    if (!is_new) return known->second;
    bool evaluates = false;
    for (const uint32_t frame : definitions_.StackFrames(stack)) evaluates |= OfFrame(frame);
    return stacks_[stack] = evaluates;
  }

 private:
  bool OfFrame(uint32_t frame) {
    const auto [known, is_new] = frames_.try_emplace(frame);
    if (is_new) {
      const std::vector<FrameText> texts = DescribeFrame(definitions_, frame);
      known->second = std::any_of(texts.begin(), texts.end(), IsEvaluation);
    }
    return known->second;
  }

  const format::Definitions& definitions_;
  absl::flat_hash_map<uint32_t, bool> frames_, stacks_;
};

class ForwardFinder {
 public:
  ForwardFinder(const Trace& trace, const format::Definitions& definitions, const Cycles& cycles,
                const PhaseSpans& spans)
      : trace_(trace),
        cycles_(cycles),
        spans_(spans.spans),
        backwards_(BackwardBegins(spans)),
        evaluations_(definitions) {}

  std::vector<PhaseSpan> Find() && {
    for (const Cycle& cycle : cycles_.cycles) {
      const Step begin = &cycle == &cycles_.cycles.front() ? EndOfInit() : cycle.begin;
      if (begin > cycle.begin) found_.push_back({cycle.begin, begin, Phase::kInit, 0});
      AddForwards(begin, EndOfForward(cycle, backwards_));
    }
    return std::move(found_);
  }

 private:
  // Calls `visit` with step and stack of each block born in begin+1..end until it returns true.
  template <typename Visit>
  void ForBirths(Step begin, Step end, Visit visit) const {
    for (Step step = begin + 1; step <= end; ++step) {
      const StepRecord record = trace_.steps[step - 1];
      if (record.row == kNoRow || record.is_death) continue;
      if (trace_.rows.heap[record.row] <= kHostHeap) continue;
      if (visit(step, trace_.rows.stack[record.row])) return;
    }
  }

  // A step that begins with a mark or range has no initialisation before it.
  Step EndOfInit() {
    const Cycle& first = cycles_.cycles.front();
    const bool is_marked =
        cycles_.source.starts_with("mark ") || cycles_.source.starts_with("range ");
    if (is_marked || first.begin != 0 || cycles_.cycles.size() < 2) return first.begin;
    absl::flat_hash_set<uint32_t> recurring;
    const Cycle& second = cycles_.cycles[1];
    ForBirths(second.begin, EndOfForward(second, backwards_), [&](Step, uint32_t stack) {
      if (stack != 0 && !evaluations_.Of(stack)) recurring.insert(stack);
      return false;
    });
    Step end = first.begin;
    ForBirths(first.begin, EndOfForward(first, backwards_), [&](Step step, uint32_t stack) {
      if (recurring.contains(stack)) end = step - 1;
      return end != first.begin;
    });
    return end;
  }

  // Adds the parts of [begin, end) that are in no backward pass and no optimizer.
  void AddForwards(Step begin, Step end) {
    auto next = std::lower_bound(spans_.begin(), spans_.end(), begin,
                                 [](const PhaseSpan& span, Step step) { return span.end <= step; });
    for (; begin < end; ++next) {
      const Step until = next == spans_.end() ? end : std::min(end, next->begin);
      AddForward(begin, until);
      if (next == spans_.end()) return;
      begin = std::max(begin, next->end);
    }
  }

  // Births without a stack, and frees, belong to the phase before them.
  void AddForward(Step begin, Step end) {
    const size_t before = found_.size();
    const auto end_last = [&](Step at) {
      if (found_.size() > before) found_.back().end = at;
    };
    ForBirths(begin, end, [&](Step step, uint32_t stack) {
      const bool is_first = found_.size() == before;
      const Phase phase = evaluations_.Of(stack) ? Phase::kEvaluation : Phase::kForward;
      if (!is_first && (stack == 0 || found_.back().phase == phase)) return false;
      end_last(step - 1);
      found_.push_back({step - 1, end, phase, pass_});
      return false;
    });
    end_last(end);
    if (found_.size() > before) ++pass_;
  }

  const Trace& trace_;
  const Cycles& cycles_;
  const std::vector<PhaseSpan>& spans_;
  const std::vector<Step> backwards_;
  EvaluationStacks evaluations_;
  uint32_t pass_ = 0;
  std::vector<PhaseSpan> found_;
};

}  // namespace

PhaseSpans FindPhaseSpans(const Trace& trace, const format::Definitions& definitions) {
  return SpanFinder(trace, definitions).Find();
}

std::vector<PhaseSpan> ForwardSpans(const Trace& trace, const format::Definitions& definitions,
                                    const Cycles& cycles, const PhaseSpans& spans) {
  return ForwardFinder(trace, definitions, cycles, spans).Find();
}

}  // namespace gmt::analysis
