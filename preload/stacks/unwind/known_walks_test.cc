// Walks that follow earlier walks of their thread, compared with walks that do not.

#include "preload/stacks/unwind/known_walks.h"

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
void ExpectKeepsAll(const Registers& here, const CallerRegisters& caller,
                    const WalkedFrames& by_rules, uint32_t skipped) {
  NativeWalk walk(here, NativeWalk::Known::kEarlierWalks);
  if (!walk.KeepAll(caller)) return;
  KnownPath path = *walk.path();
  const uint32_t count = path.Count();
  ASSERT_EQ(count, by_rules.count - 1);
  if (count > session::kMaxStackDepth) return;
  KnownPath dropped = path;
  uint32_t i = 0;
  KnownPath::Piece piece(path);
  EXPECT_EQ(dropped.DropWhile([&](const KnownFrame&) { return i++ < skipped; }, &piece),
            skipped < count);
  piece = KnownPath::Piece(path);
  const KnownFrame* in_piece = piece.first;
  session::StackSum sum, known;
  for (i = 0; i < count; ++i, ++in_piece, path.DropFirst()) {
    const uint64_t address = by_rules.frames[i + 1].address;
    EXPECT_EQ(path.first()->behind, address) << i;
    EXPECT_EQ(path.Count(), count - i);
    if (in_piece > piece.last) {
      ASSERT_TRUE(piece.Advance());
      in_piece = piece.first;
    }
    EXPECT_EQ(path.first(), in_piece);
    if (i == skipped) {
      known = path.Sum();
      EXPECT_EQ(dropped.first(), path.first());
      EXPECT_EQ(dropped.Sum().Hash(0, 0, 0).digest(), known.Hash(0, 0, 0).digest());
    }
    if (i >= skipped) sum.AddNative(address, count - 1 - i);
  }
  EXPECT_EQ(known.Hash(0, 0, 0).digest(), sum.Hash(0, 0, 0).digest());
}

__attribute__((noinline)) WalkedFrames WalkTwice(uint32_t skipped = 0) {
  const Registers here = CaptureRegisters();
  WalkedFrames by_rules, known;
  CollectByRules(here, NativeWalk::Known::kNothing, &by_rules);
  ExpectKeepsAll(here, CaptureCaller(), by_rules, skipped);
  CollectByRules(here, NativeWalk::Known::kEarlierWalks, &known);
  EXPECT_FALSE(Differ(by_rules, known)) << by_rules.count << ", " << known.count;
  return known;
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
      switch (random_() % 6) {
        case 0:
          Plain(depth - 1);
          break;
        case 1:  // the same frame at the same place, with another caller
          Plain(depth - 1);
          asm volatile("" ::: "memory");
          break;
        case 2:
          Variable(depth - 1, 16 << random_() % 6);
          break;
        case 3:
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

class KnownWalksTest : public ::testing::Test {
 protected:
  KnownWalksTest() {
    PrepareModules();
    RulesChanged();
  }
};

TEST_F(KnownWalksTest, RandomProgramsHaveTheSameFramesWithIt) {
  uint64_t walks = 0;
  ForEachSeed(SeedsUpTo(30), [&](uint32_t seed) {
    RandomProgram program(seed);
    program.Run();
    walks += program.walks();
  });
  EXPECT_GT(walks, 300u);
}

TEST_F(KnownWalksTest, ThreadsThatShareOneHaveTheirOwnFrames) {
  constexpr uint32_t kThreads = 40;  // more than there are trees
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

// Returns how many frames are known to the walks of this thread, -1 if they do without.
int64_t KnownFrames() {
  KnownWalks* walks = KnownWalks::Acquire(RuleCache::Epoch());
  if (walks == nullptr) return -1;
  const int64_t known = walks->IndexOf(walks->end()) - 1;
  walks->Release();
  return known;
}

TEST_F(KnownWalksTest, FramesAreKeptOnce) {
  int64_t known = 0;
  for (int round = 0; round < 3; ++round) {
    for (const int depth : {50, 3, 120, 50}) AtDepth(depth);
    if (round > 0) {
      EXPECT_EQ(KnownFrames(), known);
    }
    known = KnownFrames();
    EXPECT_GT(known, 123);
    EXPECT_LT(known, 123 + 3 * 50);
  }
}

// All frames further in are elsewhere for each size.
__attribute__((noinline)) void AfterSize(size_t size) {
  void* memory = alloca(size);
  asm volatile("" : : "r"(memory) : "memory");
  AtDepth(30);
  asm volatile("" : : "r"(memory) : "memory");
}

TEST_F(KnownWalksTest, FramesAreForgottenIfThereIsNoRoomForMore) {
  int64_t known = 0;
  bool shrinks = false;
  for (size_t size = 16; size < 16 * 200; size += 16) {
    AfterSize(size);
    shrinks |= KnownFrames() < known;
    known = KnownFrames();
    EXPECT_GT(known, 30);
  }
  EXPECT_TRUE(shrinks);
}

__attribute__((noinline)) bool KeepsAllAtDepth(int depth) {
  bool keeps = false;
  if (depth == 0) {
    NativeWalk walk(CaptureRegisters(), NativeWalk::Known::kEarlierWalks);
    keeps = walk.KeepAll(CaptureCaller());
  } else {
    keeps = KeepsAllAtDepth(depth - 1);
  }
  asm volatile("" ::: "memory");
  return keeps;
}

TEST_F(KnownWalksTest, KeepsAllFramesUnlessTheWalkIsTooDeep) {
  for (const int depth : {50, 3, 120, 50}) EXPECT_TRUE(KeepsAllAtDepth(depth)) << depth;
  EXPECT_FALSE(KeepsAllAtDepth(1000));
  EXPECT_TRUE(KeepsAllAtDepth(50));
  const RulesInDoubt doubt;
  EXPECT_FALSE(KeepsAllAtDepth(50));
}

TEST_F(KnownWalksTest, NewRulesMakeAllFramesUnknown) {
  AtDepth(10);
  EXPECT_GT(KnownFrames(), 10);
  RulesChanged();
  EXPECT_EQ(KnownFrames(), 0);
}

TEST_F(KnownWalksTest, IsNotUsedWhileALibraryMayBeGoingAway) {
  AtDepth(10);
  {
    const RulesInDoubt doubt;
    EXPECT_EQ(KnownWalks::Acquire(RuleCache::Epoch()), nullptr);
    AtDepth(10);
  }
  EXPECT_EQ(KnownFrames(), 0);
}

TEST_F(KnownWalksTest, WalkThatIsTooDeepHasTheSameFramesWithIt) {
  AtDepth(200);
  const WalkedFrames walked = AtDepth(1000);
  EXPECT_TRUE(walked.truncated);
  for (const int depth : {200, 270, 280, 300, 260}) AtDepth(depth);
}

// A walk inside of a walk finds the tree in use, as in a signal handler.
TEST_F(KnownWalksTest, WalkInsideOfAWalkDoesWithoutIt) {
  AtDepth(5);
  const Registers here = CaptureRegisters();
  WalkedFrames alone, outer;
  CollectByRules(here, NativeWalk::Known::kNothing, &alone);
  {
    NativeWalk walk(here, NativeWalk::Known::kEarlierWalks);
    EXPECT_EQ(KnownWalks::Acquire(RuleCache::Epoch()), nullptr);
    for (NativeFrame frame; walk.Next(&frame);) {
      outer.frames[outer.count++] = frame;
      WalkTwice();
    }
  }
  EXPECT_FALSE(Differ(alone, outer));
  EXPECT_GT(KnownFrames(), 3);
}

// A made-up stack of five frames, each of four words: [frame pointer] [] [] [return address].
class MadeUpFramesTest : public KnownWalksTest {
 protected:
  static constexpr uint32_t kFrames = 5;

  MadeUpFramesTest() : walks_(KnownWalks::Acquire(RuleCache::Epoch())) {
    walks_->Forget();
    for (uint32_t i = 0; i < kFrames; ++i) {
      words_[4 * i] = 100 + i;
      words_[4 * i + 3] = 200 + i;
      frames_[i] = {SpAfter(i), 200 + i, 100 + i, StepProof(SpAfter(i), false)};
    }
  }
  ~MadeUpFramesTest() override {
    walks_->Forget();
    walks_->Release();
  }

  uint64_t SpAfter(uint32_t i) const { return reinterpret_cast<uint64_t>(&words_[4 * i + 4]); }
  // Keeps those from `first` to `last`, which `outer` has called, and returns the first.
  KnownFrame* Keep(uint32_t first, uint32_t last, KnownFrame* outer = nullptr) {
    KnownFrame* end = std::copy(frames_ + first, frames_ + last + 1, walks_->end());
    return walks_->Keep(end, outer);
  }
  // Returns the number of frames to which a walk from `frame` leads.
  int Followed(KnownFrame* frame) {
    const KnownFrame* const end = walks_->Follow(frame);
    int count = 0;
    for (; frame != end; frame = walks_->CallerOf(frame)) ++count;
    return count;
  }
  KnownFrame* Find(uint64_t high = ~uint64_t{0}, uint32_t room = 100) {
    return walks_->Find(frames_[0], high, room);
  }
  static session::Digest DigestOf(session::StackSum sum) { return sum.Hash(0, 0, 0).digest(); }
  session::Digest SumOf(const std::vector<uint64_t>& addresses) {
    session::StackSum sum;
    for (size_t i = 0; i < addresses.size(); ++i)
      sum.AddNative(addresses[i], static_cast<uint32_t>(addresses.size() - 1 - i));
    return DigestOf(sum);
  }

  KnownWalks* const walks_;
  uint64_t words_[4 * kFrames + 1] = {};
  KnownFrame frames_[kFrames];
};

TEST_F(MadeUpFramesTest, AreFoundByTheirState) {
  EXPECT_EQ(Find(), nullptr);
  KnownFrame* const first = Keep(0, 4);
  EXPECT_EQ(Find(), first);
  EXPECT_EQ(Find(SpAfter(kFrames - 1)), first);
  EXPECT_EQ(Find(SpAfter(kFrames - 1) - 1), nullptr) << "the outermost is not known to be readable";
  EXPECT_EQ(Find(~uint64_t{0}, 6), first);
  EXPECT_EQ(Find(~uint64_t{0}, 5), nullptr);
  frames_[0].bp = 7;
  EXPECT_EQ(Find(), first);
  frames_[0].behind = 7;
  EXPECT_EQ(Find(), nullptr);
}

TEST_F(MadeUpFramesTest, AreFoundOneAfterTheOther) {
  KnownFrame* const one = Keep(0, 4);
  KnownFrame* const other = Keep(0, 1, one + 2);
  EXPECT_EQ(Find(), other);
  EXPECT_EQ(walks_->Find(frames_[0], ~uint64_t{0}, 100, other), one);
  EXPECT_EQ(walks_->Find(frames_[0], ~uint64_t{0}, 100, one), nullptr);
  walks_->Prefer(one);
  EXPECT_EQ(Find(), one);
  EXPECT_EQ(walks_->Find(frames_[0], ~uint64_t{0}, 100, one), other);
}

TEST_F(MadeUpFramesTest, AreFollowedUntilOneIsDifferent) {
  KnownFrame* const outer = Keep(3, 4);
  KnownFrame* const first = Keep(0, 2, outer);
  EXPECT_EQ(Followed(first), 4);
  for (uint32_t i = 1; i < kFrames; ++i) {
    words_[4 * i + 3] = 7;  // another caller
    EXPECT_EQ(Followed(first), i - 1);
    words_[4 * i + 3] = 200 + i;
  }
}

TEST_F(MadeUpFramesTest, FramePointerIsComparedWhereAStepFurtherOutDependsOnIt) {
  frames_[3] = {SpAfter(3), 203, 103, StepProof(SpAfter(3), true)};
  frames_[2].proof = StepProof();  // does not change it
  KnownFrame* const first = Keep(0, 4);
  for (uint32_t i = 0; i < kFrames; ++i)
    EXPECT_EQ(first[i].proof.bp_matters(), i == 2 || i == 3) << i;
  words_[4 * 1] = 7;  // loaded by the step to the second
  words_[4 * 4] = 7;  // ... to the last
  EXPECT_EQ(Followed(first), 4);
  EXPECT_EQ(walks_->BpAt(first, first + 1), 7u);
  words_[4 * 2] = 7;
  EXPECT_EQ(Followed(first), 1);
  EXPECT_EQ(walks_->Find(frames_[2], ~uint64_t{0}, 100), first + 2);
  frames_[2].bp = 7;
  EXPECT_EQ(walks_->Find(frames_[2], ~uint64_t{0}, 100), nullptr);
}

TEST_F(MadeUpFramesTest, FramePointerMattersAcrossPieces) {
  frames_[3].proof = StepProof(SpAfter(3), true);
  KnownFrame* const outer = Keep(3, 4);
  KnownFrame* const first = Keep(0, 2, outer);
  EXPECT_EQ(Followed(first), 4);
  words_[4 * 3] = 7;
  EXPECT_EQ(Followed(first), 2);
}

TEST_F(MadeUpFramesTest, AreNotFollowedWhereLoadsDoNotProveTheStep) {
  frames_[2].proof = StepProof::None();
  KnownFrame* const first = Keep(0, 4);
  EXPECT_EQ(Followed(first), 2);
  EXPECT_EQ(walks_->CallerOf(first + 2), first + 3);
}

TEST_F(MadeUpFramesTest, AreForgottenIfThereIsNoRoomForMoreChecks) {
  for (uint32_t i = 0; i < kFrames; ++i) frames_[i].proof = StepProof(SpAfter(i), true);
  uint32_t most = 0;
  for (int walk = 0; walk < 400; ++walk) {
    EXPECT_EQ(Followed(Keep(0, 4)), 4);
    most = std::max(most, walks_->IndexOf(walks_->end()));
    walks_->Release();
    ASSERT_EQ(KnownWalks::Acquire(RuleCache::Epoch()), walks_);
  }
  EXPECT_GT(most, 1000u);
  EXPECT_LT(most, 1600u) << "there is room for more frames";
}

TEST_F(MadeUpFramesTest, FramePointerIsLoadedFromTheLastPlaceThatIsKnown) {
  frames_[2].proof = StepProof();
  KnownFrame* const outer = Keep(2, 4);
  KnownFrame* const first = Keep(0, 1, outer);
  first->bp = 55;
  EXPECT_EQ(walks_->BpAt(first, first), 55u);
  EXPECT_EQ(walks_->BpAt(first, first + 1), 101u);
  EXPECT_EQ(walks_->BpAt(first, outer), 102u);
  EXPECT_EQ(walks_->BpAt(first, outer + 1), 102u);
  EXPECT_EQ(walks_->BpAt(first, outer + 2), 104u);
  KnownFrame appended[kFrames];
  EXPECT_EQ(walks_->Append(first, outer + 1, appended), appended + 4);
  EXPECT_EQ(appended[0].bp, 55u);
  EXPECT_EQ(appended[3].bp, 102u);
  EXPECT_EQ(appended[3].behind, 203u);
}

TEST_F(MadeUpFramesTest, SumsAreThoseOfTheFramesFromThereOn) {
  KnownFrame* const outer = Keep(3, 4);
  KnownFrame* const first = Keep(0, 2, outer);
  EXPECT_EQ(DigestOf(session::StackSum(walks_->SumFrom(first))), SumOf({200, 201, 202, 203, 204}));
  EXPECT_EQ(DigestOf(session::StackSum(walks_->SumFrom(outer))), SumOf({203, 204}));
  EXPECT_EQ(walks_->CountFrom(first), 5u);
}

TEST_F(MadeUpFramesTest, PathJumpsToFramesThatAreAsDeep) {
  KnownFrame* const one = Keep(0, 4);
  frames_[2].behind = 302;
  frames_[3].behind = 303;
  KnownFrame* const other = Keep(0, 4);
  KnownPath path(walks_);
  EXPECT_FALSE(path.Jump(one + 1, other + 1));
  EXPECT_FALSE(path.Jump(one + 1, other + 3));
  EXPECT_TRUE(path.Jump(one + 1, other + 2));
  EXPECT_TRUE(path.Jump(other + 2, one + 3));
  path.Begin(one);
  std::vector<uint64_t> addresses = {200, 201, 302, 203, 204};
  do {
    EXPECT_EQ(path.first()->behind, addresses.front());
    EXPECT_EQ(path.Count(), addresses.size());
    EXPECT_EQ(DigestOf(path.Sum()), SumOf(addresses));
    addresses.erase(addresses.begin());
  } while (path.DropFirst());
  EXPECT_TRUE(addresses.empty());
}

TEST_F(MadeUpFramesTest, PiecesOfAPathEndWhereItJumps) {
  KnownFrame* const one = Keep(0, 4);
  KnownFrame* const other = Keep(0, 4);
  KnownPath path(walks_);
  ASSERT_TRUE(path.Jump(one + 1, other + 2));
  path.Begin(one);
  KnownPath::Piece piece(path);
  EXPECT_EQ(piece.first, one);
  EXPECT_EQ(piece.last, one + 1);
  EXPECT_EQ(piece.end, SpAfter(2));
  ASSERT_TRUE(piece.Advance());
  EXPECT_EQ(piece.first, other + 2);
  EXPECT_EQ(piece.last, other + 4);
  EXPECT_EQ(piece.end, ~uint64_t{0});
  EXPECT_FALSE(piece.Advance());
}

void WalkInHandler(int) { WalkTwice(); }

TEST_F(KnownWalksTest, FramesBehindASignalHandlerAreTheSame) {
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
