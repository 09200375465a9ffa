#include "analysis/categories/lives.h"

#include <algorithm>

namespace gmt::analysis {
namespace {

constexpr uint32_t kLongCycles = 3;  // a life is long if it spans this many ends of steps
constexpr uint32_t kSeenCycles = 2;  // ... or this many without being freed

}  // namespace

Lives::Lives(const Trace& trace, const Cycles& cycles, const PhaseSpans& spans,
             const Stacks& stacks)
    : trace_(trace), birth_segment_(trace.rows.count(), 0), lives_(trace.rows.count(), RowLife{}) {
  CutSegments(cycles, spans);
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    if (trace.rows.IsBlock(row)) end_of_births_ = std::max(end_of_births_, trace.rows.birth[row]);
  }
  Walk(stacks);
  if (!has_training()) CountSteps(cycles);
}

void Lives::AddSegment(Step begin, Step end, Phase phase, uint32_t pass) {
  Segment segment{begin, end, phase, pass, 0, 0, 0};
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

void Lives::Walk(const Stacks& stacks) {
  const Rows& rows = trace_.rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.birth[row] == 0) AddBirth(row, 0, stacks);
  }
  uint32_t segment = 0;
  size_t failure = 0;
  Step ran_out = 0;  // the step after the last failure
  for (Step step = 1; step <= trace_.last_step(); ++step) {
    while (segment + 1 < segments_.size() && step > segments_[segment].end) ++segment;
    for (; failure < trace_.failed.size() && trace_.failed[failure].step < step; ++failure) {
      if (trace_.failed[failure].heap > kHostHeap) ran_out = trace_.failed[failure].step + 1;
    }
    const StepRecord record = trace_.steps[step - 1];
    if (record.row == kNoRow) continue;
    if (!record.is_death) {
      AddBirth(record.row, segment, stacks);
      if (rows.IsBlock(record.row)) last_birth_ = step;
      continue;
    }
    if (rows.birth[record.row] < ran_out && ran_out > segments_[segment].begin) {
      lives_[record.row].ran_out = true;
    }
    AddDeath(record.row, segment, step);
  }
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.death[row] != kNever) continue;
    lives_[row].life = LifeOf(row, static_cast<uint32_t>(segments_.size() - 1), false);
    const Segment &last = segments_.back(), &first = segments_[birth_segment_[row]];
    lives_[row].crosses_backward = last.passes > first.passes;
    lives_[row].crosses_passes = last.passes - first.passes >= kLongCycles;
    lives_[row].crosses_optimizer = last.optimizers > first.optimizers;
  }
}

void Lives::AddBirth(RowId row, uint32_t segment, const Stacks& stacks) {
  RowLife& life = lives_[row];
  birth_segment_[row] = segment;
  const Segment& in = segments_[segment];
  life.before_training =
      in.passes == 0 && (in.phase == Phase::kOther || !has_backward_) && in.optimizers == 0;
  const uint32_t stack = trace_.rows.stack[row];
  const StackPhase stack_phase = stacks.phase(stack);
  if (in.phase != Phase::kOther) module_called_ = false;
  if (stack_phase == StackPhase::kOptimizer ||
      (stack_phase == StackPhase::kNone && in.phase == Phase::kOptimizer)) {
    life.born = Born::kOptimizer;
    return;
  }
  if (stack_phase != StackPhase::kNone || in.phase == Phase::kBackward) {
    life.born = Born::kBackward;
    return;
  }
  if (module_segment_ != segment) module_called_ = false;
  const bool calls_module = stack != 0 && trace_.rows.IsBlock(row) && stacks.calls_module(stack);
  if (calls_module) {
    module_called_ = true;
    module_segment_ = segment;
  }
  life.born = module_called_ ? Born::kForward : Born::kStart;
}

void Lives::AddDeath(RowId row, uint32_t segment, Step step) {
  RowLife& life = lives_[row];
  const Segment &first = segments_[birth_segment_[row]], &last = segments_[segment];
  life.life = LifeOf(row, segment, true);
  life.crosses_backward = last.passes > first.passes;
  life.crosses_passes = last.passes - first.passes >= kLongCycles;
  life.crosses_optimizer = last.optimizers > first.optimizers;
  life.dies_backward = last.phase == Phase::kBackward;
  life.dies_optimizer = last.phase == Phase::kOptimizer;
  life.dies_at_once = step > segments_[birth_segment_[row]].end &&
                      last_birth_ <= segments_[birth_segment_[row]].end;
}

void Lives::CountSteps(const Cycles& cycles) {
  const auto ended_before = [&](Step step) {
    const auto ends_later = [](Step at, const Cycle& cycle) { return at < cycle.end; };
    return std::upper_bound(cycles.cycles.begin(), cycles.cycles.end(), step, ends_later) -
           cycles.cycles.begin();
  };
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
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
