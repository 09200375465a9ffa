#include "session/stack_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "session/arena_reader.h"
#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::session {
namespace {

// A stack as written.
struct Written {
  std::vector<uint64_t> frames;  // words
  std::vector<uint32_t> codes;   // of its interpreter frames
  uint64_t fingerprint = 0;
  auto operator<=>(const Written&) const = default;
};

std::vector<StackFrame> AsRead(const Written& stack) {
  std::vector<StackFrame> frames;
  size_t code = 0;
  for (const uint64_t word : stack.frames) {
    if ((word & kInterpreterFrame) != 0) {
      frames.push_back({.kind = StackFrame::Kind::kPython,
                        .code = stack.codes[code++],
                        .instruction = static_cast<uint32_t>(word & kMaxInstruction)});
    } else {
      frames.push_back({.address = word});
    }
  }
  return frames;
}

SessionSizes LargeSizes() {
  SessionSizes sizes = SmallSizes();
  sizes.stack_index = 1 << 16;
  sizes.arena = 1 << 21;
  return sizes;
}

class StackTableTest : public ::testing::Test {
 protected:
  uint32_t Add(const std::vector<uint64_t>& frames, uint32_t like = 0) {
    return AddStack(session_->map().stacks(), frames, 0, 0, {}, like);
  }
  uint32_t Add(const Written& stack, uint32_t like = 0) {
    return AddStack(session_->map().stacks(), stack.frames, kStackPython, 0, stack.codes, like,
                    stack.fingerprint);
  }
  std::vector<StackFrame> Read(uint32_t id) {
    StackFrames stack;
    return ReadStack(session_->map(), id, &stack) ? stack.frames : std::vector<StackFrame>();
  }
  uint64_t Used() { return session_->control().arena_used.load(); }

  std::optional<ScratchSession> session_{std::in_place, LargeSizes()};
};

// For two stacks with the same index place and tag, only their contents distinguish them.
TEST(StackTableCollisionTest, StacksWithTheSameHashAreDistinguished) {
  ScratchSession session{LargeSizes()};
  std::atomic<uint64_t> index[1] = {};
  const StackTable table(InternIndex(index, 1), session.map().arena());
  StackTable::Buffer stack = {};
  stack.frames[0] = InterpreterFrame(0x1000, 1);
  stack.frames[1] = 0x2000;
  const uint32_t code[] = {7};
  stack.fingerprint = 0;
  const uint32_t id = table.Add(stack, 2, kStackPython, 3, code, 0);
  ASSERT_NE(id, 0u);
  const auto tag = [&stack](uint32_t generation) {
    return StackTable::HashOf(stack, 2, kStackPython, generation).value() >> kArenaOffsetBits;
  };
  const uint64_t same = tag(3);
  ASSERT_EQ(same, index[0].load() >> kArenaOffsetBits);
  const StackTable::Buffer original = stack;
  do ++stack.fingerprint;
  while (tag(3) != same);
  EXPECT_EQ(table.Find(stack, 2, kStackPython, 3), 0u) << "other code objects";
  stack = original;
  do ++stack.frames[1];
  while (tag(3) != same);
  EXPECT_EQ(table.Find(stack, 2, kStackPython, 3), 0u) << "another frame";
  stack = original;
  uint32_t generation = 3;
  do ++generation;
  while (tag(generation) != same);
  EXPECT_EQ(table.Find(stack, 2, kStackPython, generation), 0u) << "another generation";
  EXPECT_EQ(table.Find(stack, 2, kStackPython, 3), id);
}

// Each stack is the previous one plus four inner frames.
TEST_F(StackTableTest, StackHasFewPiecesAfterRepeatedSharing) {
  std::vector<uint64_t> frames = {1, 2, 3, 4, 5, 6, 7, 8};
  const Arena arena = session_->map().arena();
  uint32_t most = 0, id = 0;
  while (frames.size() < kMaxStackDepth) {
    id = Add(frames, id);
    StackPieces pieces(arena, id);
    uint32_t count = 0;
    for (StackPieces::Piece piece; pieces.Next(&piece);) ++count;
    most = count > most ? count : most;
    for (int i = 0; i < 4; ++i) frames.insert(frames.begin(), 1000 + frames.size());
  }
  EXPECT_EQ(most, 8u);
}

TEST_F(StackTableTest, StackIsReadBackUnchanged) {
  const uint32_t id = AddStack(session_->map().stacks(), {10, 20 | kExactFrame, 30},
                               kStackTruncated | kStackUnmerged, 5);
  StackFrames stack;
  ASSERT_TRUE(ReadStack(session_->map(), id, &stack));
  EXPECT_EQ(
      stack.frames,
      (std::vector<StackFrame>{
          {.address = 10}, {.kind = StackFrame::Kind::kExact, .address = 20}, {.address = 30}}));
  EXPECT_EQ(stack.generation, 5u);
  EXPECT_EQ(stack.flags, kStackTruncated | kStackUnmerged);
}

TEST_F(StackTableTest, EqualStacksShareAnIdAndOthersDoNot) {
  const StackTable stacks = session_->map().stacks();
  const uint32_t id = Add({1, 2, 3});
  EXPECT_EQ(Add({1, 2, 3}), id);
  EXPECT_NE(Add({1, 2}), id);
  EXPECT_NE(Add({3, 2, 1}), id);
  EXPECT_NE(AddStack(stacks, {1, 2, 3}, kStackTruncated), id);
  EXPECT_NE(AddStack(stacks, {1, 2, 3}, 0, 1), id);
}

TEST_F(StackTableTest, FindReturnsExistingStacksAndAddsNone) {
  StackTable::Buffer stack = {0, {7, 8, 9}};
  EXPECT_EQ(session_->map().stacks().Find(stack, 3, 0, 0), 0u);
  EXPECT_EQ(Used(), 0u);
  const uint32_t id = Add({7, 8, 9});
  EXPECT_EQ(session_->map().stacks().Find(stack, 3, 0, 0), id);
}

TEST_F(StackTableTest, InterpreterFramesKeepTheirCodeObjects) {
  const Written stack = {
      {1, InterpreterFrame(0x1000, 4), 2, InterpreterFrame(0x2000, 6)}, {50, 60}, 9};
  EXPECT_EQ(Read(Add(stack)), AsRead(stack));
}

TEST_F(StackTableTest, AnotherCodeObjectAtTheSameAddressIsAnotherStack) {
  Written stack = {{1, InterpreterFrame(0x1000, 4)}, {50}, 9};
  const uint32_t before = Add(stack);
  stack.codes = {51};
  stack.fingerprint = 10;
  const uint32_t after = Add(stack, before);
  EXPECT_NE(after, before);
  EXPECT_EQ(Read(after)[1].code, 51u);
  EXPECT_EQ(Read(before)[1].code, 50u);
}

TEST_F(StackTableTest, OuterFramesAreStoredOnce) {
  std::vector<uint64_t> frames(70);
  for (size_t i = 0; i < frames.size(); ++i) frames[i] = 1000 + i;
  uint32_t like = Add(frames);
  const uint64_t first = Used();
  for (uint64_t leaf = 1; leaf <= 100; ++leaf) {
    frames[0] = leaf;
    like = Add(frames, like);
    EXPECT_EQ(Read(like).front().address, leaf);
    EXPECT_EQ(Read(like).back().address, 1069u);
  }
  EXPECT_LT(Used(), first + 100 * 6);
}

TEST_F(StackTableTest, OnlyFramesWithTheSameCodeObjectsAreShared) {
  Written stack = {{}, {}, 1};
  for (uint32_t i = 0; i < 40; ++i) {
    stack.frames.push_back(InterpreterFrame(0x1000 + i * 64, i));
    stack.codes.push_back(100 + i);
  }
  const uint32_t before = Add(stack);
  stack.frames[0] = InterpreterFrame(0x9000, 1);
  stack.codes[20] = 7;  // recreated in the middle of the stack
  stack.fingerprint = 2;
  EXPECT_EQ(Read(Add(stack, before)), AsRead(stack));
}

TEST_F(StackTableTest, DeepestStackFits) {
  std::vector<uint64_t> frames(kMaxStackDepth);
  for (size_t i = 0; i < frames.size(); ++i) frames[i] = i + 1;
  EXPECT_EQ(Read(Add(frames)), AsRead({frames, {}, 0}));
}

TEST_F(StackTableTest, StackThatIsTheOuterPartOfAnotherGetsItsOwnId) {
  const std::vector<uint64_t> deep = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<uint64_t> shallow = {3, 4, 5, 6, 7, 8};
  const uint32_t id = Add(deep);
  EXPECT_EQ(Read(Add(shallow, id)), AsRead({shallow, {}, 0}));
  EXPECT_EQ(Read(id), AsRead({deep, {}, 0}));
}

TEST_F(StackTableTest, LikeMayBeAnyNumber) {
  const std::vector<uint64_t> frames = {1, 2, 3, 4, 5, 6, 7, 8};
  Add(frames);
  for (uint64_t like : {uint64_t{2}, uint64_t{5}, Used() - 1, Used() + 10, uint64_t{~0u}}) {
    std::vector<uint64_t> another = frames;
    another[0] = 100 + like;
    EXPECT_EQ(Read(Add(another, static_cast<uint32_t>(like))), AsRead({another, {}, 0})) << like;
  }
}

// The oracle is a map of complete stacks. Stacks grow and shrink like those of a program.
TEST_F(StackTableTest, RandomStacksAreReadBackUnchanged) {
  ForEachSeed({1}, [&](uint32_t seed) {
    std::mt19937_64 random(seed);
    session_.emplace(LargeSizes());
    std::map<Written, uint32_t> oracle;
    std::map<uint64_t, uint32_t> code_at;  // the code object at each address, which may change
    Written stack;
    uint32_t like = 0;
    for (int round = 0; round < 20000; ++round) {
      for (uint64_t n = 1 + random() % 6; n > 0 && !stack.frames.empty(); --n)
        stack.frames.erase(stack.frames.begin());
      if (random() % 100 == 0) code_at[random() % 8] = static_cast<uint32_t>(1 + random() % 1000);
      do {
        const uint64_t where = random() % 8;
        stack.frames.insert(stack.frames.begin(),
                            random() % 3 == 0 ? InterpreterFrame(0x1000 + where * 8, random() % 4)
                                              : 1 + random() % 8);
      } while (random() % 3 != 0 && stack.frames.size() < kMaxStackDepth);
      stack.codes.clear();
      stack.fingerprint = 17;
      for (const uint64_t word : stack.frames) {
        if ((word & kInterpreterFrame) == 0) continue;
        const uint64_t where = ((word & ~kInterpreterFrame) >> kInstructionBits) - 0x1000 / 8;
        stack.codes.push_back(code_at[where]);
        stack.fingerprint = stack.fingerprint * 31 + code_at[where];
      }
      const uint32_t id = Add(stack, random() % 10 == 0 ? 0 : like);
      ASSERT_NE(id, 0u) << round;
      const auto [known, is_new] = oracle.try_emplace(stack, id);
      ASSERT_EQ(known->second, id) << round;
      like = id;
    }
    for (const auto& [written, id] : oracle) ASSERT_EQ(Read(id), AsRead(written)) << id;
  });
}

TEST_F(StackTableTest, InvalidIdsAreNotFound) {
  const uint64_t words = session_->map().count(kArena);
  StackFrames stack;
  for (const uint64_t id :
       {uint64_t{0}, uint64_t{1}, uint64_t{500}, words - 1, words, uint64_t{~0u}})
    EXPECT_FALSE(ReadStack(session_->map(), static_cast<uint32_t>(id), &stack)) << id;
}

TEST_F(StackTableTest, LengthBeyondTheArenaIsRejected) {
  const uint64_t last = session_->map().count(kArena) - sizeof(StackHeader) / sizeof(uint64_t);
  StackHeader header = {};
  header.depth = header.own = 100;
  std::memcpy(session_->map().section<uint64_t>(kArena) + last, &header, sizeof(header));
  StackFrames stack;
  EXPECT_FALSE(ReadStack(session_->map(), static_cast<uint32_t>(last), &stack));
}

TEST_F(StackTableTest, CyclicStackIsRejected) {
  const uint32_t id = Add({1, 2, 3, 4, 5, 6, 7, 8});
  auto* header = reinterpret_cast<StackHeader*>(session_->map().section<uint64_t>(kArena) + id);
  header->own = 2;
  header->outer = id;
  StackFrames stack;
  EXPECT_FALSE(ReadStack(session_->map(), id, &stack));
}

TEST(FullStackTableTest, FullArenaGivesIdZeroAndKeepsExistingStacks) {
  ScratchSession session;
  const StackTable stacks = session.map().stacks();
  const uint32_t first = AddStack(stacks, {1});
  uint32_t id = first;
  for (uint64_t i = 2; id != 0 && i < 10000; ++i) id = AddStack(stacks, {i, i, i, i, i, i, i, i});
  EXPECT_EQ(id, 0u);
  EXPECT_EQ(AddStack(stacks, {1}), first);
  EXPECT_LE(session.control().arena_used.load(), session.map().count(kArena));
}

TEST(StackTableThreadsTest, ThreadsThatAddTheSameStacksGetTheSameIds) {
  ScratchSession session(LargeSizes());
  constexpr uint64_t kStacks = 500;
  std::vector<std::vector<uint32_t>> ids(4, std::vector<uint32_t>(kStacks));
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      uint32_t like = 0;
      for (uint64_t i = 0; i < kStacks; ++i) {
        std::vector<uint64_t> frames(20);
        for (uint64_t f = 0; f < 20; ++f) frames[f] = f + (f < 5 ? i * 1000 : 7);
        like = ids[t][i] = AddStack(session.map().stacks(), frames, 0, 0, {}, like);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t t = 1; t < 4; ++t) EXPECT_EQ(ids[t], ids[0]);
  EXPECT_EQ(std::set<uint32_t>(ids[0].begin(), ids[0].end()).size(), kStacks);
  StackFrames stack;
  ASSERT_TRUE(ReadStack(session.map(), ids[0][7], &stack));
  EXPECT_EQ(stack.frames[3].address, 7003u);
  EXPECT_EQ(stack.frames[19].address, 26u);
}

}  // namespace
}  // namespace gmt::session
