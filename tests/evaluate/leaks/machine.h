// tests/evaluate/leaks/machine.h
//
// Machine: the synthetic memory of a program for the evaluation of leaks. It records allocations
// and frees cycle by cycle, beginning at Attach(). Blocks that were allocated before can be freed
// later; the recording then has a free without an allocation.
//
// Not thread-safe.

#ifndef GMT_TESTS_EVALUATE_LEAKS_MACHINE_H_
#define GMT_TESTS_EVALUATE_LEAKS_MACHINE_H_

#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/testing/event_script.h"

namespace gmt::evaluate {

enum class Where : uint8_t { kBlock, kDriver, kPinned };

class Machine {
 public:
  using Block = uint64_t;  // its address

  // `states_completions`: whether the recording states for each freed block when it can be reused.
  Machine(uint64_t seed, bool states_completions)
      : random(seed), states_completions_(states_completions) {}

  // Returns a stack whose innermost frame is `operation`, which is native code of `library`, or
  // Python code if `library` is "". The program's `own` frames (function and line, outermost last)
  // follow.
  uint32_t Stack(const std::vector<std::pair<std::string, uint32_t>>& own,
                 const std::string& operation, const std::string& library = "");

  Block Alloc(uint32_t stack, uint64_t size, Where where = Where::kBlock);
  void Free(Block block);
  // Frees a block that can never be reused, because a stream that uses it never completes.
  void FreeForgotten(Block block);
  // Increases the driver's own use of memory, which the next sample shows.
  void GrowDriver(uint64_t bytes) { hidden_bytes_ += bytes; }

  void Attach() { recording_ = true; }
  bool recording() const { return recording_; }
  void EndCycle();

  double Uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  }
  uint32_t Whole(uint32_t low, uint32_t high) {
    return std::uniform_int_distribution<uint32_t>(low, high)(random);
  }
  bool Chance(double p) { return Uniform(0, 1) < p; }

  analysis::EventScript script;
  std::mt19937_64 random;

 private:
  struct Held {
    uint64_t size = 0;
    Where where = Where::kBlock;
  };
  const bool states_completions_;
  bool recording_ = false;
  uint64_t next_address_ = uint64_t{1} << 40;
  uint64_t hidden_bytes_ = uint64_t{400} << 20, driver_bytes_ = 0;
  std::unordered_map<Block, Held> held_;
};

}  // namespace gmt::evaluate

#endif  // GMT_TESTS_EVALUATE_LEAKS_MACHINE_H_
