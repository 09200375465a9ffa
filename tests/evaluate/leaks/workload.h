// tests/evaluate/leaks/workload.h
//
// What programs do with memory that grows, with the truth beside it: leaks of known kinds, and benign
// habits that look like them.
//
// Thread safety: one thread.

#ifndef GMT_TESTS_EVALUATE_LEAKS_WORKLOAD_H_
#define GMT_TESTS_EVALUATE_LEAKS_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/evaluate/leaks/machine.h"

namespace gmt::evaluate {

// One habit of the program.
class Habit {
 public:
  explicit Habit(std::string kind) : name(std::move(kind)) {}
  virtual ~Habit() = default;
  virtual void Cycle(Machine& machine, uint32_t cycle) = 0;

  std::string name;  // the kind: "every step", "queue"
  bool is_leak = false;
  bool is_untracked = false;     // no event shows it
  uint32_t longest_life = 0;     // cycles that its blocks live: of a queue
  std::vector<uint32_t> stacks;  // those of the leak; of a benign habit all
  std::vector<uint64_t> leaked;  // by cycle: bytes left for ever

 protected:
  void NoteLeak(uint32_t cycle, uint64_t bytes) {
    if (leaked.size() <= cycle) leaked.resize(cycle + 1);
    leaked[cycle] += bytes;
  }
};

using Habits = std::vector<std::unique_ptr<Habit>>;

struct HabitOptions {
  uint32_t begin = 0;     // the cycle at which watching begins
  uint32_t cycles = 800;  // watched
  uint32_t longest_queue = 120;
};

// Every benign habit, some of them several times; `line` numbers the lines of the program.
Habits BenignHabits(Machine& machine, const HabitOptions& options, uint32_t& line);

inline constexpr uint32_t kLeakKinds = 16;
// One leak of kind 0..kLeakKinds-1.
std::unique_ptr<Habit> Leak(uint32_t kind, Machine& machine, const HabitOptions& options,
                            uint32_t& line);
// A queue that is longer than what is watched.
std::unique_ptr<Habit> LongQueue(Machine& machine, uint32_t length, uint32_t& line);

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_LEAKS_WORKLOAD_H_
