// tests/evaluate/leaks/workload.h
//
// The habits of synthetic programs: leaks of known kinds, and benign patterns of growing memory
// that resemble them.
//
// Not thread-safe.

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
  bool is_untracked = false;     // its memory has no events
  uint32_t longest_life = 0;     // of a queue: maximum lifetime of its blocks in cycles
  std::vector<uint32_t> stacks;  // that leak; of a benign habit, all stacks
  std::vector<uint64_t> leaked;  // bytes leaked in each cycle

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

// Returns all benign habits, some of them several times. `line` is the next unused line number of
// the program.
Habits BenignHabits(Machine& machine, const HabitOptions& options, uint32_t& line);

inline constexpr uint32_t kLeakKinds = 16;
// Returns a leak of kind 0..kLeakKinds-1.
std::unique_ptr<Habit> Leak(uint32_t kind, Machine& machine, const HabitOptions& options,
                            uint32_t& line);
// Returns a queue that is longer than the watched time.
std::unique_ptr<Habit> LongQueue(Machine& machine, uint32_t length, uint32_t& line);

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_LEAKS_WORKLOAD_H_
