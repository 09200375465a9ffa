// tests/evaluate/leaks/machine.h
//
// Machine: a program's memory as the evaluation of leaks makes it up, event by event: what it allocates
// and frees, cycle by cycle. Until it is attached to, nothing is recorded; what was allocated before is
// freed later all the same, as a block that nobody saw being born.
//
// Thread safety: one thread.

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

  // `states_completions`: of every freed block the recording says when it may be used again.
  Machine(uint64_t seed, bool states_completions)
      : random(seed), states_completions_(states_completions) {}

  // The program's own frames, outermost last, with a line each; `operation` is the library's. `library`
  // is the file that the native frame below is in; "": none.
  uint32_t Stack(const std::vector<std::pair<std::string, uint32_t>>& own,
                 const std::string& operation, const std::string& library = "");

  Block Alloc(uint32_t stack, uint64_t size, Where where = Where::kBlock);
  void Free(Block block);
  // Freed, but a stream that the allocator waits for is never done.
  void FreeForgotten(Block block);
  // What the driver takes for itself; the next sample shows it.
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
