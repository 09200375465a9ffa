// tests/evaluate/leaks/program.h
//
// A synthetic program that has run and was recorded, with the truth about its leaks.
//
// Not thread-safe.

#ifndef GMT_TESTS_EVALUATE_LEAKS_PROGRAM_H_
#define GMT_TESTS_EVALUATE_LEAKS_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/trace/trace.h"
#include "tests/evaluate/leaks/workload.h"

namespace gmt::evaluate {

struct Plan {
  uint64_t seed = 1;
  uint32_t attach_at = 0;  // the cycle at which recording begins
  uint32_t cycles = 800;   // recorded
  bool clean = false;      // no leaks
  bool long_queues = false;
  bool marks = true;  // the program marks the ends of its steps
};

// The memory that a leak has leaked in the window.
struct Truth {
  const Habit* habit = nullptr;
  uint32_t times = 0;          // cycles in which it leaked
  uint32_t begin = 0;          // the first of them, counted from the window's first cycle
  double bytes_per_cycle = 0;  // see TruthOf() in program.cc
  // Whether it must be found: it leaked at least 5 times and began in the first three quarters.
  bool counts = false;
};

class RecordedProgram {
 public:
  explicit RecordedProgram(const Plan& plan);

  const analysis::Examination& examination() const { return *examination_; }
  // Returns the truth about the first `cycles` recorded cycles.
  std::vector<Truth> TruthOf(uint32_t cycles) const;
  const Habit* HabitOf(uint32_t stack) const;
  const Habits& habits() const { return habits_; }
  analysis::EventScript& script() { return machine_.script; }

 private:
  void AddHabits(const Plan& plan);

  const Plan plan_;
  Machine machine_;
  Habits habits_;
  analysis::Trace trace_;
  std::unique_ptr<analysis::Examination> examination_;
};

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_LEAKS_PROGRAM_H_
