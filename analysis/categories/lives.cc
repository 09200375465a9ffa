#include "analysis/categories/lives.h"

#include <algorithm>

#include "analysis/categories/stack_hints.h"

namespace gmt::analysis {
namespace {

constexpr uint32_t kLongCycles = 3;  // a life is long if it spans this many ends of steps
constexpr uint32_t kSeenCycles = 2;  // ... or this many without being freed

}  // namespace

Lives::Lives(const Trace& trace, const RowKinds& kinds, const Cycles& cycles,
             const PhaseSpans& spans, StackHints& hints, StackPhases& phases)
    : trace_(trace),
      is_block_(kinds, [](const RowKind& kind) { return kind.is_block(); }),
      birth_segment_(trace.rows.count(), 0),
      lives_(trace.rows.count(), RowLife{}) {
  CutSegments(cycles, spans);
  if (!has_training()) end_of_births_ = LastBirthOfABlock();
  Walk(kinds, hints, phases);
  if (!has_training()) CountSteps(cycles);
}

Step Lives::LastBirthOfABlock() const {
  Step last = 0;
  for (RowId row = trace_.rows.count(); row-- > 0;) {
    if (is_block_.Of(row)) last = std::max(last, Step{trace_.rows.birth[row]});
    if (trace_.rows_by_birth && last != 0) break;
  }
  return last;
}

void Lives::AddSegment(Step begin, Step end, Phase phase, uint32_t pass) {
  Segment segment{begin, end, phase, pass};
  if (!segments_.empty()) {
    segment.passes = segments_.back().passes;
    segment.optimizers = segments_.back().optimizers;
  }
  if (phase == Phase::kBackward) segment.passes = pass + 1;
  if (phase == Phase::kOptimizer) ++segment.optimizers;
  segments_.push_back(segment);
}

void Lives::CutSegments(const Cycles& cycles, const PhaseSpans& spans) {
  Step reached = 0;
  auto idle = spans.idle_optimizers.begin();
  for (const PhaseSpan& span : spans.spans) {
    if (span.begin > reached || segments_.empty()) {
      AddSegment(reached, span.begin, Phase::kOther, 0);
    }
    Step begin = span.begin;
    for (; idle != spans.idle_optimizers.end() && *idle < span.end; ++idle) {
      if (span.phase != Phase::kBackward || *idle <= begin) continue;
      AddSegment(begin, *idle, Phase::kBackward, span.pass);
      AddSegment(*idle, *idle, Phase::kOptimizer, 0);
      begin = *idle;
    }
    AddSegment(begin, span.end, span.phase, span.pass);
    last_phase_ = static_cast<uint32_t>(segments_.size() - 1);
    has_backward_ |= span.phase == Phase::kBackward;
    has_optimizer_ |= span.phase == Phase::kOptimizer;
    reached = span.end;
  }
  AddSegment(reached, trace_.last_step(), Phase::kOther, 0);
  for (Segment& segment : segments_) {
    segment.is_before_training = segment.passes == 0 && segment.optimizers == 0 &&
                                 (segment.phase == Phase::kOther || !has_backward_);
  }
  NumberCycles(cycles);
}

// Without a loop, each backward pass counts as a step.
void Lives::NumberCycles(const Cycles& cycles) {
  if (cycles.cycles.empty()) {
    for (size_t i = 1; i < segments_.size(); ++i) {
      const bool begins = segments_[i].phase == Phase::kOther;
      segments_[i].cycle = begins ? segments_[i].passes : segments_[i - 1].cycle;
    }
    return;
  }
  uint32_t cycle = 0;
  for (Segment& segment : segments_) {
    while (cycle < cycles.cycles.size() && cycles.cycles[cycle].end <= segment.begin) ++cycle;
    segment.cycle = cycle;
  }
}

void Lives::Walk(const RowKinds& kinds, StackHints& hints, StackPhases& phases) {
  const Rows& rows = trace_.rows;
  const RowId count = rows.count();
  for (const RowId row : kinds.from_before()) AddBirth(row, 0, hints, phases);
  uint32_t segment = 0;
  size_t failure = 0;
  Step ran_out = 0;  // the step after the last failure
  const Step last_step = trace_.last_step();
  for (Step step = 1; step <= last_step; ++step) {
    while (segment + 1 < segments_.size() && step > segments_[segment].end) ++segment;
    for (; failure < trace_.failed.size() && trace_.failed[failure].step < step; ++failure) {
      if (trace_.failed[failure].heap > kHostHeap) ran_out = trace_.failed[failure].step + 1;
    }
    const StepRecord record = trace_.steps[step - 1];
    if (record.row == kNoRow) continue;
    if (record.is_death) {
      AddDeath(record.row, segment, step,
               ran_out > segments_[segment].begin && rows.birth[record.row] < ran_out);
    } else {
      AddBirth(record.row, segment, hints, phases);
      if (is_block_.Of(record.row)) last_birth_ = step;
    }
  }
  for (RowId row = 0; row < count; ++row) {
    if (rows.death[row] == kNever) AddOpen(row);
  }
}

void Lives::AddBirth(RowId row, uint32_t segment, StackHints& hints, StackPhases& phases) {
  birth_segment_[row] = segment;
  RowLife life = lives_[row];
  life.before_training = segments_[segment].is_before_training;
  life.born = BornIn(row, segment, hints, phases);
  lives_[row] = life;
}

Born Lives::BornIn(RowId row, uint32_t segment, StackHints& hints, StackPhases& phases) {
  const Phase phase = segments_[segment].phase;
  const uint32_t stack = trace_.rows.stack[row];
  const StackPhase stack_phase = phases.Of(stack);
  if (phase != Phase::kOther) module_called_ = false;
  if (stack_phase == StackPhase::kOptimizer ||
      (stack_phase == StackPhase::kNone && phase == Phase::kOptimizer)) {
    return Born::kOptimizer;
  }
  if (stack_phase != StackPhase::kNone || phase == Phase::kBackward) return Born::kBackward;
  if (module_segment_ != segment) module_called_ = false;
  if (stack != 0 && is_block_.Of(row) && hints.CallsModule(stack)) {
    module_called_ = true;
    module_segment_ = segment;
  }
  return module_called_ ? Born::kForward : Born::kStart;
}

void Lives::AddDeath(RowId row, uint32_t segment, Step step, bool ran_out) {
  if (ran_out) lives_[row].ran_out = true;
  const Segment &first = segments_[birth_segment_[row]], &last = segments_[segment];
  const Lifespan lifespan = LifeOf(row, segment, true);
  RowLife life = lives_[row];
  life.life = lifespan;
  life.crosses_backward = last.passes > first.passes;
  life.crosses_passes = last.passes - first.passes >= kLongCycles;
  life.crosses_optimizer = last.optimizers > first.optimizers;
  life.dies_backward = last.phase == Phase::kBackward;
  life.dies_optimizer = last.phase == Phase::kOptimizer;
  life.dies_at_once = step > first.end && last_birth_ <= first.end;
  lives_[row] = life;
}

// Adds what the life of a row shows that is still held at the end.
void Lives::AddOpen(RowId row) {
  const Segment &last = segments_.back(), &first = segments_[birth_segment_[row]];
  RowLife& life = lives_[row];
  life.life = LifeOf(row, static_cast<uint32_t>(segments_.size() - 1), false);
  life.crosses_backward = last.passes > first.passes;
  life.crosses_passes = last.passes - first.passes >= kLongCycles;
  life.crosses_optimizer = last.optimizers > first.optimizers;
}

void Lives::CountSteps(const Cycles& cycles) {
  const auto ended_before = [&](Step step) {
    const auto ends_later = [](Step at, const Cycle& cycle) { return at < cycle.end; };
    return std::upper_bound(cycles.cycles.begin(), cycles.cycles.end(), step, ends_later) -
           cycles.cycles.begin();
  };
  const RowId count = trace_.rows.count();
  for (RowId row = 0; row < count; ++row) {
    const auto ended = ended_before(trace_.rows.death[row]) - ended_before(trace_.rows.birth[row]);
    lives_[row].crosses_steps = ended >= kLongCycles;
  }
}

// What is freed after the last phase is freed because the program ends.
bool Lives::CountsAsFreed(RowId row, uint32_t dies_in) const {
  if (has_training()) return dies_in <= last_phase_ || birth_segment_[row] > last_phase_;
  return lives_[row].born != Born::kStart || trace_.rows.death[row] <= end_of_births_;
}

Lifespan Lives::LifeOf(RowId row, uint32_t dies_in, bool freed) const {
  const uint32_t born_in = birth_segment_[row];
  const Segment &first = segments_[born_in], &last = segments_[dies_in];
  const uint32_t cycles = last.cycle - first.cycle;
  if (freed && CountsAsFreed(row, dies_in)) {
    if (lives_[row].ran_out && born_in == dies_in) return Lifespan::kOpen;
    if (born_in == dies_in) return trace_.rows.birth[row] == 0 ? Lifespan::kOpen : Lifespan::kPhase;
    if (first.phase == Phase::kBackward && last.phase == Phase::kBackward &&
        first.pass == last.pass) {
      return Lifespan::kPass;
    }
    if (cycles >= kLongCycles) return Lifespan::kLong;
    const bool soon = cycles == 0 || (cycles == 1 && last.phase == Phase::kOther);
    return soon ? Lifespan::kAcross : Lifespan::kSteps;
  }
  if (cycles >= kSeenCycles) return Lifespan::kLong;
  // It has already outlived its phase.
  const bool same_pass = last.phase == Phase::kBackward && first.pass == last.pass;
  const bool outlived = first.phase != Phase::kOther && born_in != dies_in && !same_pass;
  return outlived ? Lifespan::kAcross : Lifespan::kOpen;
}

}  // namespace gmt::analysis
