// Walks with arbitrary starts over memory that is not a stack: W1 of native_walk.h. What they find
// does not matter, only that they end and read nothing but mapped memory.

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/native_walk.h"
#include "preload/stacks/unwind/slow_walk.h"
#include "tests/seeds/seeds.h"

namespace gmt::preload {
namespace {

constexpr size_t kSize = 64 << 10, kPage = 4096;

// Memory surrounded by unreadable pages.
class Island {
 public:
  Island()
      : memory_(static_cast<char*>(
            mmap(nullptr, kSize + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(memory_ + kPage, kSize, PROT_READ | PROT_WRITE);
  }
  ~Island() { munmap(memory_, kSize + 2 * kPage); }
  uint64_t begin() const { return reinterpret_cast<uint64_t>(memory_) + kPage; }
  uint64_t end() const { return begin() + kSize; }
  uint64_t* words() const { return reinterpret_cast<uint64_t*>(begin()); }

 private:
  char* const memory_;
};

// Returns addresses in code: possible return addresses in this program and in libc, and some in
// between.
std::vector<uint64_t> AddressesInCode() {
  std::vector<uint64_t> addresses;
  for (const void* place :
       {reinterpret_cast<const void*>(&AddressesInCode), reinterpret_cast<const void*>(&std::qsort),
        reinterpret_cast<const void*>(&std::printf)}) {
    const auto address = reinterpret_cast<uint64_t>(place);
    for (uint64_t i = 0; i < 20000; i += 3) addresses.push_back(address + i);
  }
  return addresses;
}

class GarbageTest : public ::testing::Test {
 protected:
  GarbageTest() {
    PrepareModules();
    StackRange{0, 0}.Remember();  // a range cached by another test may be at the island's address
  }

  uint64_t RandomWord() {
    switch (random_() % 8) {
      case 0:
        return random_();
      case 1:
        return 0;
      case 2:
      case 3:  // on the island, or just outside it
        return island_.begin() - kPage + random_() % (kSize + 2 * kPage) / 8 * 8;
      default:
        return code_[random_() % code_.size()];
    }
  }

  std::mt19937_64 random_;
  const Island island_;
  const std::vector<uint64_t> code_ = AddressesInCode();
};

TEST_F(GarbageTest, WalksEndAndReadOnlyMappedMemory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "expressions may read memory that the sanitizer protects";
#endif
  ForEachSeed({1}, [&](uint32_t seed) {
    random_.seed(seed);
    uint64_t frames = 0, deepest = 0;
    for (int round = 0; round < 300; ++round) {
      for (size_t i = 0; i < kSize / 8; ++i) island_.words()[i] = RandomWord();
      for (int walk = 0; walk < 100; ++walk) {
        Registers start = {RandomWord(), 0, RandomWord(), RandomWord(), RandomWord(), 0, 0, 0};
        start.sp = island_.begin() + random_() % kSize / 8 * 8;
        if (walk % 10 == 0) start.sp = RandomWord();
        NativeFrame frame;
        uint64_t depth = 0;
        NativeWalk native(start);
        for (; native.Next(&frame); ++depth) {
        }
        frames += depth;
        deepest = depth > deepest ? depth : deepest;
        SlowWalk slow(start, StackRange::Around(start.sp));
        for (uint64_t i = 0; i < 300 && slow.Next(&frame); ++i) {
        }
      }
    }
    EXPECT_GT(frames, 10000u);
    EXPECT_GT(deepest, 3u);
  });
}

TEST_F(GarbageTest, UnmappedStackIsNotTrusted) {
  for (int i = 0; i < 100; ++i) {
    const Island gone;
    StackRange range = StackRange::Around(gone.begin());
    EXPECT_TRUE(range.Reach(gone.end() - 8));
    EXPECT_FALSE(range.Reach(gone.end()));
    EXPECT_FALSE(range.Reach(gone.begin() - 8));
    range.Remember();
  }
  EXPECT_EQ(StackRange::Around(8).high, StackRange::Around(8).low);
}

// Walks by an artificial rule, from a code address that is stored in every word.
struct Walked {
  uint32_t count;
  bool truncated;
};
Walked WalkBy(Rule rule, const Island& island, Registers start, size_t shift = 0) {
  start.pc = AddressesInCode()[0];
  for (const uint64_t behind : {start.pc + 1, start.pc}) {  // as interrupted code, and as a caller
    RuleCache::Remember(behind, RuleCache::Epoch(), rule);
  }
  for (size_t at = shift; at + 8 <= kSize; at += 8) {
    memcpy(reinterpret_cast<char*>(island.words()) + at, &start.pc, 8);
  }
  NativeWalk walk(start);
  uint32_t count = 0;
  for (NativeFrame frame; walk.Next(&frame);) ++count;
  RulesChanged();
  return {count, walk.truncated()};
}

TEST_F(GarbageTest, WalkEndsAtTheMaximumDepthOfAStack) {
  Registers start = {};
  start.sp = island_.begin();
  const Walked walked = WalkBy(Rule::At(Rule::kPlain, false, 8, 0), island_, start);
  EXPECT_TRUE(walked.truncated);
  EXPECT_GE(walked.count, 256u);
  EXPECT_LT(walked.count, 300u);
}

TEST_F(GarbageTest, FramePointerSavedBelowTheStackIsNotRead) {
  Registers start = {};
  start.sp = island_.begin();
  const Rule rule = Rule::At(Rule::kPlain, false, 8, 0).WithBpAtCfa(-int64_t{2 * kPage});
  EXPECT_GT(WalkBy(rule, island_, start).count, 1u);
}

TEST_F(GarbageTest, AddressThatFollowsNoCallIsNoFrame) {
  Registers start = {};
  start.pc = code_[0];
  start.sp = start.bp = island_.begin();
  RuleCache::Remember(start.pc + 1, RuleCache::Epoch(), Rule::At(Rule::kPlain, false, 8, 0));
  for (size_t i = 0; i < kSize / 8; ++i) island_.words()[i] = island_.begin() + 64 + 8 * i;
  NativeWalk walk(start);
  NativeFrame frame;
  EXPECT_TRUE(walk.Next(&frame));
  EXPECT_FALSE(walk.Next(&frame));
  EXPECT_TRUE(walk.truncated());
  RulesChanged();
}

__attribute__((noinline)) uint64_t ReturnAddress() {
  return reinterpret_cast<uint64_t>(__builtin_return_address(0));
}

// Code without tables has called, so what is above its page may be another stack by now.
TEST_F(GarbageTest, EarlierWalkIsNotFollowedToMemoryThatIsGone) {
  Registers start = {};
  start.pc = code_[0];
  start.sp = island_.begin();
  start.bp = island_.begin() + 64;
  const uint64_t without_table = code_[1], caller = ReturnAddress();
  const uint64_t epoch = RuleCache::Epoch();
  RuleCache::Remember(start.pc + 1, epoch, Rule::At(Rule::kPlain, false, 8, 0));
  RuleCache::Remember(without_table, epoch, Rule::OfShape(Rule::kNoTable));
  RuleCache::Remember(caller, epoch, Rule::At(Rule::kPlain, false, kPage, 0));
  island_.words()[0] = without_table;
  for (uint64_t at = 64 + 8; at < 4 * kPage; at += kPage) island_.words()[at / 8] = caller;
  const auto count = [&] {
    NativeWalk walk(start, NativeWalk::Known::kEarlierWalks);
    uint32_t frames = 0;
    for (NativeFrame frame; walk.Next(&frame);) ++frames;
    return frames;
  };
  EXPECT_EQ(count(), 2 + 4u);
  mprotect(reinterpret_cast<void*>(island_.begin() + kPage), kSize - kPage, PROT_NONE);
  EXPECT_EQ(count(), 2 + 1u);
  RulesChanged();
}

TEST_F(GarbageTest, UnalignedFrameEndsTheWalk) {
  Registers start = {};
  start.sp = island_.begin();
  start.bp = start.sp + 100;  // not a multiple of eight
  const Walked walked = WalkBy(Rule::At(Rule::kPlain, true, 16, 0), island_, start, 4);
  EXPECT_EQ(walked.count, 1u);
  EXPECT_TRUE(walked.truncated);
}

TEST_F(GarbageTest, RangeGrowsBothWays) {
  const uint64_t middle = island_.begin() + kSize / 2;
  StackRange range = StackRange::Around(middle);
  EXPECT_TRUE(range.Holds(middle));
  EXPECT_EQ(range.high - range.low, kPage);
  EXPECT_TRUE(range.Reach(middle + 3 * kPage));
  EXPECT_EQ(range.high - range.low, 4 * kPage);
  EXPECT_TRUE(range.Reach(middle - 2 * kPage));
  EXPECT_EQ(range.high - range.low, 6 * kPage);
  range.Remember();
  EXPECT_EQ(StackRange::Around(middle + 8).high, range.high);
  // A deeper start keeps what is known above.
  EXPECT_EQ(StackRange::Around(island_.begin()).high, range.high);
}

}  // namespace
}  // namespace gmt::preload
