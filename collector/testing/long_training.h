// collector/testing/long_training.h
//
// For tests and benchmarks: LongTraining plays a training run of any length in a FakeTarget, with
// little memory of its own: weights that stay, activations of every step, and a block that one line
// of code leaks every few steps. It knows the correct contents of its recording.
//
//   LongTraining training(target, 1000);
//   training.Step();                 // as often as needed
//   EXPECT_EQ(LiveOf(...), training.live());
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_TESTING_LONG_TRAINING_H_
#define GMT_COLLECTOR_TESTING_LONG_TRAINING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collector/testing/fake_target.h"

namespace gmt::collector {

class LongTraining {
 public:
  static constexpr uint32_t kSites = 64, kActivations = 500, kWeights = 200;
  static constexpr uint64_t kLeakedBytes = 8192;
  static constexpr Layer kBlock = {session::Space::kBlock, session::Memory::kBlock};
  // Address of the code that leaks: the innermost frame of its stack.
  static constexpr uint64_t kLeakAddress = 0x7ead00;
  static constexpr uint64_t kModule = 0x400000, kModuleEnd = 0x900000;

  // Leaks a block every `leak_every` steps. The target must outlive this.
  LongTraining(FakeTarget* target, uint64_t leak_every, uint64_t seed);

  // Plays one step: a mark, `kActivations` blocks and their frees, and sometimes a leaked block.
  void Step();

  // Called after each event of a step; may be empty.
  std::function<void()> after_event;

  uint64_t events() const { return events_; }
  uint64_t steps() const { return steps_; }
  uint64_t leaked() const { return leaked_; }
  uint64_t allocations() const { return allocations_; }
  uint64_t peak_bytes() const { return peak_bytes_; }
  // Between two steps: the live blocks, size by address.
  const std::map<uint64_t, uint64_t>& live() const { return live_; }
  uint64_t live_bytes() const { return live_bytes_; }

 private:
  void Keep(uint64_t size, uint32_t stack);
  void Mark();
  void Count();

  FakeTarget& target_;
  const uint64_t leak_every_;
  std::mt19937_64 random_;
  std::vector<uint32_t> stacks_;
  uint32_t leak_stack_ = 0, mark_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> activations_;  // address, size
  std::map<uint64_t, uint64_t> live_;
  uint64_t next_address_ = uint64_t{1} << 40;
  uint64_t events_ = 0, steps_ = 0, leaked_ = 0, allocations_ = 0;
  uint64_t live_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_TESTING_LONG_TRAINING_H_
