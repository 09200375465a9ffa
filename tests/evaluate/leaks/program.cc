#include "tests/evaluate/leaks/program.h"

#include <algorithm>

namespace gmt::evaluate {
namespace {

constexpr uint32_t kForgottenStream = 11;  // a kind of leak that needs recorded completions
constexpr uint32_t kLeastTimes = 5;

uint32_t FirstKindOf(uint64_t seed) { return static_cast<uint32_t>(seed / 2 % kLeakKinds); }

}  // namespace

RecordedProgram::RecordedProgram(const Plan& plan)
    : plan_(plan), machine_(plan.seed, FirstKindOf(plan.seed) == kForgottenStream) {
  AddHabits(plan);
  for (uint32_t cycle = 0; cycle < plan.attach_at + plan.cycles; ++cycle) {
    if (cycle == plan.attach_at) {
      machine_.Attach();
      if (plan.marks) machine_.script.Mark("step", cycle);
    }
    for (const auto& habit : habits_) habit->Cycle(machine_, cycle);
    machine_.EndCycle();
    if (plan.marks && machine_.recording()) machine_.script.Mark("step", cycle + 1);
  }
  trace_ = machine_.script.Build();
  examination_ = std::make_unique<analysis::Examination>(trace_, machine_.script.definitions());
}

// A fifth of the programs have no leaks, the others 1 to 3 of different kinds. Each kind is equally
// often the first one.
void RecordedProgram::AddHabits(const Plan& plan) {
  uint32_t line = 100;
  const HabitOptions options{plan.attach_at, plan.cycles, 120};
  habits_ = BenignHabits(machine_, options, line);
  if (plan.long_queues) habits_.push_back(LongQueue(machine_, machine_.Whole(150, 1500), line));
  uint32_t kind = FirstKindOf(plan.seed);
  const uint32_t leaks = plan.clean || machine_.Chance(0.2) ? 0 : machine_.Whole(1, 3);
  for (uint32_t i = 0; i < leaks; ++i) {
    habits_.push_back(Leak(kind, machine_, options, line));
    do {
      kind = (kind + machine_.Whole(1, kLeakKinds - 1)) % kLeakKinds;
    } while (kind == kForgottenStream);
  }
}

std::vector<Truth> RecordedProgram::TruthOf(uint32_t cycles) const {
  std::vector<Truth> all;
  for (const auto& habit : habits_) {
    if (!habit->is_leak) continue;
    Truth truth;
    truth.habit = habit.get();
    double bytes = 0;
    for (uint32_t i = 0; i < cycles && plan_.attach_at + i < habit->leaked.size(); ++i) {
      const uint64_t left = habit->leaked[plan_.attach_at + i];
      if (left == 0) continue;
      if (truth.times++ == 0) truth.begin = i;
      bytes += static_cast<double>(left);
    }
    // The rate of an intermittent leak is measured from the beginning of the window.
    const uint32_t first = habit->name == "begins midway" ? truth.begin : 0;
    truth.bytes_per_cycle = bytes / std::max(1u, cycles - first);
    truth.counts = truth.times >= kLeastTimes && truth.begin < cycles * 3 / 4;
    all.push_back(truth);
  }
  return all;
}

const Habit* RecordedProgram::HabitOf(uint32_t stack) const {
  for (const auto& habit : habits_) {
    if (std::find(habit->stacks.begin(), habit->stacks.end(), stack) != habit->stacks.end())
      return habit.get();
  }
  return nullptr;
}

}  // namespace gmt::evaluate
