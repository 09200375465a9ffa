// Walks that follow the last walk of their thread, compared with walks that do not.

#include "preload/stacks/unwind/last_walk.h"

#include <alloca.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/testing/compare_walks.h"
#include "tests/seeds/seeds.h"

namespace gmt::preload {
namespace {

using testing::CollectByRules;
using testing::Differ;
using testing::WalkedFrames;

// If KeepAll() succeeds, its frames are those of a walk by rules without the innermost, and
// their sum is that of the same frames added one by one. `skipped`: the number of innermost
// frames that are left out of the sum.
void ExpectKeepsAll(const Registers& here, const WalkedFrames& by_rules, uint32_t skipped) {
  NativeWalk walk(here, NativeWalk::Known::kLastWalk);
  LastWalk* const kept = walk.KeepAll();
  if (kept == nullptr) return;
  const uint32_t count = kept->CountFrom(kept->begin());
  ASSERT_EQ(count, by_rules.count - 1);
  if (count > session::kMaxStackDepth) return;
  session::StackSum sum;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t address = by_rules.frames[i + 1].address;
    EXPECT_EQ(kept->begin()[i].behind, address) << i;
    if (i >= skipped) sum.AddNative(address, count - 1 - i);
  }
  const session::StackSum known = kept->SumFrom(kept->begin() + std::min(skipped, count));
  EXPECT_EQ(known.Hash(0, 0, 0).digest(), sum.Hash(0, 0, 0).digest());
}

__attribute__((noinline)) WalkedFrames WalkTwice(uint32_t skipped = 0) {
  const Registers here = CaptureRegisters();
  WalkedFrames by_rules, after_last;
  CollectByRules(here, NativeWalk::Known::kNothing, &by_rules);
  ExpectKeepsAll(here, by_rules, skipped);
  CollectByRules(here, NativeWalk::Known::kLastWalk, &after_last);
  EXPECT_FALSE(Differ(by_rules, after_last)) << by_rules.count << ", " << after_last.count;
  return after_last;
}

// A program that calls and returns at random, with frames of several kinds.
class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  void Run() {
    for (int i = 0; i < 20; ++i) Plain(static_cast<int>(random_() % 40));
  }
  uint64_t walks() const { return walks_; }

 private:
  __attribute__((noinline)) void Next(int depth) {
    const uint32_t calls = random_() % 3;
    for (uint32_t i = 0; i <= calls; ++i) {
      if (random_() % 4 == 0) {
        WalkTwice(random_() % 4);
        ++walks_;
      }
      if (depth == 0 || (i > 0 && random_() % 8 != 0)) continue;
      switch (random_() % 4) {
        case 0:
          Plain(depth - 1);
          break;
        case 1:
          Variable(depth - 1, 16 << random_() % 6);
          break;
        case 2:
          Aligned(depth - 1);
          break;
        default:
          Throwing(depth - 1);
      }
    }
    asm volatile("" ::: "memory");  // not a tail call
  }

  __attribute__((noinline)) void Plain(int depth) {
    Next(depth);
    asm volatile("" ::: "memory");
  }
  // Its frame is found through the frame pointer.
  __attribute__((noinline)) void Variable(int depth, size_t size) {
    void* memory = alloca(size);
    asm volatile("" : : "r"(memory) : "memory");
    Next(depth);
    asm volatile("" : : "r"(memory) : "memory");
  }
  // Its frame is found through memory.
  __attribute__((noinline)) void Aligned(int depth) {
    alignas(256) char memory[64];
    asm volatile("" : : "r"(memory) : "memory");
    Next(depth);
    asm volatile("" : : "r"(memory) : "memory");
  }
  __attribute__((noinline)) void Throwing(int depth) {
    try {
      Next(depth);
      if (random_() % 4 == 0) throw depth;
    } catch (int) {
      Next(0);
    }
  }

  std::mt19937 random_;
  uint64_t walks_ = 0;
};

class LastWalkTest : public ::testing::Test {
 protected:
  LastWalkTest() {
    PrepareModules();
    RulesChanged();
  }
};

TEST_F(LastWalkTest, RandomProgramsHaveTheSameFramesWithIt) {
  uint64_t walks = 0;
  ForEachSeed(SeedsUpTo(30), [&](uint32_t seed) {
    RandomProgram program(seed);
    program.Run();
    walks += program.walks();
  });
  EXPECT_GT(walks, 300u);
}

TEST_F(LastWalkTest, ThreadsThatShareOneHaveTheirOwnFrames) {
  constexpr uint32_t kThreads = 40;  // more than there are last walks
  std::atomic<bool> stops{false};
  std::thread changes([&] {
    while (!stops.load()) RulesChanged();
  });
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([i] { RandomProgram(i).Run(); });
  for (std::thread& thread : threads) thread.join();
  stops = true;
  changes.join();
}

__attribute__((noinline)) WalkedFrames AtDepth(int depth) {
  WalkedFrames walked = depth == 0 ? WalkTwice() : AtDepth(depth - 1);
  asm volatile("" ::: "memory");
  return walked;
}

// Returns how many frames are known for the next walk of this thread.
int64_t KnownFrames() {
  LastWalk* last = LastWalk::Acquire(RuleCache::Epoch());
  if (last == nullptr) return -1;
  const int64_t known = last->end() - last->begin();
  last->Release();
  return known;
}

TEST_F(LastWalkTest, KnowsAllFramesButTheInnermost) {
  for (const int depth : {50, 3, 120, 50}) {
    const WalkedFrames walked = AtDepth(depth);
    EXPECT_EQ(KnownFrames(), walked.count - 1) << depth;
  }
}

__attribute__((noinline)) bool KeepsAllAtDepth(int depth) {
  bool keeps = false;
  if (depth == 0) {
    NativeWalk walk(CaptureRegisters(), NativeWalk::Known::kLastWalk);
    keeps = walk.KeepAll() != nullptr;
  } else {
    keeps = KeepsAllAtDepth(depth - 1);
  }
  asm volatile("" ::: "memory");
  return keeps;
}

TEST_F(LastWalkTest, KeepsAllFramesUnlessTheWalkIsTooDeep) {
  for (const int depth : {50, 3, 120, 50}) EXPECT_TRUE(KeepsAllAtDepth(depth)) << depth;
  EXPECT_FALSE(KeepsAllAtDepth(1000));
  EXPECT_TRUE(KeepsAllAtDepth(50));
  const RulesInDoubt doubt;
  EXPECT_FALSE(KeepsAllAtDepth(50));
}

TEST_F(LastWalkTest, NewRulesMakeAllFramesUnknown) {
  AtDepth(10);
  EXPECT_GT(KnownFrames(), 10);
  RulesChanged();
  EXPECT_EQ(KnownFrames(), 0);
}

TEST_F(LastWalkTest, IsNotUsedWhileALibraryMayBeGoingAway) {
  AtDepth(10);
  {
    const RulesInDoubt doubt;
    EXPECT_EQ(LastWalk::Acquire(RuleCache::Epoch()), nullptr);
    AtDepth(10);
  }
  EXPECT_EQ(KnownFrames(), 0);
}

TEST_F(LastWalkTest, WalkThatIsTooDeepKeepsNoMoreThanThereIsRoomFor) {
  AtDepth(200);
  const WalkedFrames walked = AtDepth(1000);
  EXPECT_TRUE(walked.truncated);
  const int64_t known = KnownFrames();
  EXPECT_TRUE(known >= 0 && known <= LastWalk::kMaxFrames) << known;
  for (const int depth : {200, 270, 280, 300, 260}) AtDepth(depth);
}

// A walk inside of a walk finds the last one in use, as in a signal handler.
TEST_F(LastWalkTest, WalkInsideOfAWalkDoesWithoutIt) {
  AtDepth(5);
  const Registers here = CaptureRegisters();
  WalkedFrames alone, outer;
  CollectByRules(here, NativeWalk::Known::kNothing, &alone);
  {
    NativeWalk walk(here, NativeWalk::Known::kLastWalk);
    EXPECT_EQ(LastWalk::Acquire(RuleCache::Epoch()), nullptr);
    for (NativeFrame frame; walk.Next(&frame);) {
      outer.frames[outer.count++] = frame;
      WalkTwice();
    }
  }
  EXPECT_FALSE(Differ(alone, outer));
  EXPECT_GT(KnownFrames(), 3);
}

void WalkInHandler(int) { WalkTwice(); }

TEST_F(LastWalkTest, FramesBehindASignalHandlerAreTheSame) {
  struct sigaction action = {}, before;
  action.sa_handler = WalkInHandler;
  sigaction(SIGUSR1, &action, &before);
  for (int i = 0; i < 4; ++i) {
    raise(SIGUSR1);
    AtDepth(i);
  }
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace gmt::preload
