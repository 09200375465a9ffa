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

// A made-up stack of five frames, each of four words: [frame pointer] [] [] [return address].
class MadeUpFramesTest : public LastWalkTest {
 protected:
  static constexpr uint32_t kFrames = 5;

  MadeUpFramesTest() : last_(LastWalk::Acquire(RuleCache::Epoch())) {
    last_->Forget();
    for (uint32_t i = 0; i < kFrames; ++i) {
      words_[4 * i] = 100 + i;
      words_[4 * i + 3] = 200 + i;
      frames_[i] = {SpAfter(i), 200 + i, 100 + i, StepProof(SpAfter(i) - 32, false)};
    }
  }
  ~MadeUpFramesTest() override {
    last_->Forget();
    last_->Release();
  }

  uint64_t SpAfter(uint32_t i) const { return reinterpret_cast<uint64_t>(&words_[4 * i + 4]); }
  // Returns the number of frames that are replayed after the first.
  int64_t Replayed(uint64_t high = ~uint64_t{0}, uint32_t room = 100) {
    KnownFrame changed[kFrames] = {frames_[0]};
    const int64_t count = last_->Replay(changed, last_->end(), high, room) - changed - 1;
    for (int64_t i = 1; i <= count; ++i) {
      EXPECT_EQ(changed[i].sp, frames_[i].sp);
      EXPECT_EQ(changed[i].behind, words_[4 * i + 3]);
      EXPECT_EQ(changed[i].bp, words_[4 * i]);
    }
    return count;
  }

  LastWalk* const last_;
  uint64_t words_[4 * kFrames] = {};
  KnownFrame frames_[kFrames];
};

TEST_F(MadeUpFramesTest, AreReplayedUntilOneIsDifferent) {
  EXPECT_EQ(Replayed(), 0);
  last_->RememberReplay(frames_, frames_ + kFrames);
  EXPECT_EQ(Replayed(), 4);
  EXPECT_EQ(Replayed(SpAfter(kFrames - 1)), 4);
  EXPECT_EQ(Replayed(SpAfter(kFrames - 1) - 1), 0);
  EXPECT_EQ(Replayed(~uint64_t{0}, 3), 0);
  words_[4 * 3 + 3] = 7;  // another caller
  EXPECT_EQ(Replayed(), 2);
  words_[4 * 1 + 3] = 7;
  EXPECT_EQ(Replayed(), 0);
  frames_[0].behind = 7;
  EXPECT_EQ(Replayed(), 0);
}

TEST_F(MadeUpFramesTest, AreReplayedWithAnotherFramePointerUnlessAStepUsesIt) {
  last_->RememberReplay(frames_, frames_ + kFrames);
  words_[4 * 2] = 7;
  EXPECT_EQ(Replayed(), 4);
  frames_[3].proof = StepProof(frames_[3].proof.bp_slot(), true);
  last_->RememberReplay(frames_, frames_ + kFrames);
  EXPECT_EQ(Replayed(), 2);
  words_[4 * 2] = 102;
  EXPECT_EQ(Replayed(), 4);
}

TEST_F(MadeUpFramesTest, AreReplayedUpToOneThatIsKnownOrNotProved) {
  last_->RememberReplay(frames_, frames_ + kFrames);
  const KnownFrame known[] = {frames_[2], {~uint64_t{0}, 0, 0, {}}};
  KnownFrame changed[kFrames] = {frames_[0]};
  EXPECT_EQ(last_->Replay(changed, known, ~uint64_t{0}, 100), changed + 2);
  frames_[3].proof = StepProof::None();
  last_->RememberReplay(frames_, frames_ + kFrames);
  EXPECT_EQ(Replayed(), 2);
}

TEST_F(MadeUpFramesTest, FramePointerIsComparedWhereAStepFurtherOutDependsOnIt) {
  frames_[2].proof = StepProof::None();  // as in a frame that a signal handler returns to
  frames_[3].proof = StepProof(0, false);
  frames_[4].proof = StepProof(frames_[4].proof.bp_slot(), true);
  std::copy(frames_, frames_ + kFrames, last_->changed());
  last_->Keep(last_->changed() + kFrames, nullptr);
  const KnownFrame* const kept = last_->begin();
  for (uint32_t i = 0; i < kFrames; ++i)
    EXPECT_EQ(kept[i].proof.bp_matters(), i == 2 || i == 3) << i;
  words_[4 * 1] = 7;
  EXPECT_TRUE(kept[1].IsStillNext());
  EXPECT_FALSE(kept[2].IsStillNext());
  EXPECT_TRUE(kept[4].IsStillNext());
  EXPECT_EQ(LastWalk::BpAt(kept, kept + 1), 7u);
  KnownFrame appended[2];
  EXPECT_EQ(LastWalk::Append(kept, kept + 1, appended), appended + 2);
  EXPECT_EQ(appended[1].bp, 7u);
}

TEST_F(MadeUpFramesTest, SumsAreThoseOfTheFramesFromThereOn) {
  std::copy(frames_, frames_ + kFrames, last_->changed());
  last_->Keep(last_->changed() + kFrames, nullptr);
  session::StackSum sum;
  for (uint32_t i = kFrames; i-- > 0;) {
    sum.AddNative(frames_[i].behind, kFrames - 1 - i);
    EXPECT_EQ(last_->SumFrom(last_->begin() + i).Hash(0, 0, 0).digest(),
              sum.Hash(0, 0, 0).digest());
  }
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
