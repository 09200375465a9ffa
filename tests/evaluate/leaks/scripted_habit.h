// tests/evaluate/leaks/scripted_habit.h
//
// A habit whose cycle is a function object with its own state.
//
// Not thread-safe.

#ifndef GMT_TESTS_EVALUATE_LEAKS_SCRIPTED_HABIT_H_
#define GMT_TESTS_EVALUATE_LEAKS_SCRIPTED_HABIT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "format/units.h"
#include "tests/evaluate/leaks/workload.h"

namespace gmt::evaluate {

class ScriptedHabit : public Habit {
 public:
  using Script = std::function<void(Machine&, uint32_t, ScriptedHabit&)>;

  ScriptedHabit(std::string kind, std::vector<uint32_t> of, Script script)
      : Habit(std::move(kind)), script_(std::move(script)) {
    stacks = std::move(of);
  }
  void Cycle(Machine& machine, uint32_t cycle) override { script_(machine, cycle, *this); }
  void Leaked(uint32_t cycle, uint64_t bytes) { NoteLeak(cycle, (bytes + 511) / 512 * 512); }
  uint32_t stack(size_t i = 0) const { return stacks[i]; }

 private:
  Script script_;
};

// Returns the stack of a library function that `function` calls, which the training loop calls at
// `line`.
inline uint32_t LoopStack(Machine& machine, uint32_t line, const std::string& function) {
  return machine.Stack({{function, 7}, {"train", line}, {"<module>", 900}}, "at::" + function,
                       "/usr/lib/python3/site-packages/torch/lib/libtorch_cuda.so");
}

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_LEAKS_SCRIPTED_HABIT_H_
