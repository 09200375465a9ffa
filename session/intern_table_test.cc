#include "session/intern_table.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "session/arena_reader.h"
#include "session/session_fixture.h"

namespace gmt::session {
namespace {

class InternTableTest : public ::testing::Test {
 protected:
  uint32_t Stack(const std::vector<uint64_t>& frames, uint16_t flags = 0, uint32_t generation = 0) {
    StackTable::Buffer buffer;
    std::copy(frames.begin(), frames.end(), buffer.frames);
    return session_.map().stacks().Intern(&buffer, static_cast<uint32_t>(frames.size()), flags,
                                          generation, &is_new_);
  }
  std::vector<uint64_t> Frames(uint32_t id) {
    StackFrames stack;
    return ReadStack(session_.map(), id, &stack) ? stack.frames : std::vector<uint64_t>();
  }

  ScratchSession session_;
  bool is_new_ = false;
};

TEST_F(InternTableTest, StackIsReadBackAsItWas) {
  const uint32_t id = Stack({10, 20, 30}, kStackTruncated, 5);
  EXPECT_TRUE(is_new_);
  StackFrames stack;
  ASSERT_TRUE(ReadStack(session_.map(), id, &stack));
  EXPECT_EQ(stack.frames, (std::vector<uint64_t>{10, 20, 30}));
  EXPECT_EQ(stack.generation, 5u);
  EXPECT_TRUE(stack.truncated);
}

TEST_F(InternTableTest, EqualStacksShareAnIdAndOthersDoNot) {
  const uint32_t id = Stack({1, 2, 3});
  EXPECT_EQ(Stack({1, 2, 3}), id);
  EXPECT_FALSE(is_new_);
  EXPECT_NE(Stack({1, 2}), id);
  EXPECT_NE(Stack({3, 2, 1}), id);
  EXPECT_NE(Stack({1, 2, 3}, kStackTruncated), id);
  EXPECT_NE(Stack({1, 2, 3}, 0, 1), id);
}

TEST_F(InternTableTest, FullArenaGivesIdZeroAndKeepsWhatIsThere) {
  const uint32_t first = Stack({1});
  uint32_t id = first;
  for (uint64_t i = 2; id != 0 && i < 10000; ++i) id = Stack({i, i, i, i, i, i, i, i});
  EXPECT_EQ(id, 0u);
  EXPECT_EQ(Stack({1}), first);
  EXPECT_LE(session_.control().stack_arena_used.load(), session_.map().count(kStackArena));
}

TEST_F(InternTableTest, ScribbledUseOfTheArenaDoesNotLeadTheWriterOutOfIt) {
  const uint64_t words = session_.map().count(kStackArena);
  for (const uint64_t used : {words, words - 1, ~uint64_t{0}, ~uint64_t{0} - 3, ~uint64_t{0} - 9}) {
    session_.control().stack_arena_used.store(used);
    EXPECT_EQ(Stack({used, 1, 2, 3, 4, 5, 6, 7, 8}), 0u) << used;
  }
}

TEST_F(InternTableTest, DeepestStackFits) {
  std::vector<uint64_t> frames(kMaxStackDepth);
  for (size_t i = 0; i < frames.size(); ++i) frames[i] = i + 1;
  EXPECT_EQ(Frames(Stack(frames)), frames);
}

TEST_F(InternTableTest, TextIsReadBackAsItWas) {
  const TextTable texts = session_.map().texts();
  EXPECT_EQ(ReadText(session_.map(), texts.Intern("optimizer.step")), "optimizer.step");
  EXPECT_EQ(ReadText(session_.map(), texts.Intern("")), "");
  EXPECT_EQ(texts.Intern("a"), texts.Intern("a"));
  EXPECT_NE(texts.Intern("a"), texts.Intern(std::string("a\0", 2)));
}

TEST_F(InternTableTest, LongTextIsCut) {
  const std::string text(kMaxTextLength + 100, 'x');
  EXPECT_EQ(ReadText(session_.map(), session_.map().texts().Intern(text)),
            text.substr(0, kMaxTextLength));
}

TEST_F(InternTableTest, IdsThatMeanNothingReadAsNothing) {
  StackFrames stack;
  for (const uint32_t id : {0u, 1u, 500u, 1023u, 1024u, ~0u})
    EXPECT_FALSE(ReadStack(session_.map(), id, &stack)) << id;
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{511}, uint64_t{512}, ~uint64_t{0}}) {
    EXPECT_EQ(ReadText(session_.map(), id), "") << id;
  }
}

TEST_F(InternTableTest, LengthThatReachesBeyondTheArenaIsRefused) {
  const uint64_t last = session_.map().count(kStackArena) - 1;
  session_.map().section<uint64_t>(kStackArena)[last] = 100;  // a depth
  session_.map().section<uint64_t>(kTextArena)[session_.map().count(kTextArena) - 1] = 9;
  StackFrames stack;
  EXPECT_FALSE(ReadStack(session_.map(), static_cast<uint32_t>(last), &stack));
  EXPECT_EQ(ReadText(session_.map(), session_.map().count(kTextArena) - 1), "");
}

// ---- Growth -------------------------------------------------------------------------------------

// Interns `count` different stacks of `depth` frames; how many got an id.
uint32_t InternDistinct(const StackTable& stacks, uint64_t first, uint32_t count, uint32_t depth) {
  uint32_t kept = 0;
  for (uint64_t i = first; i < first + count; ++i) {
    StackTable::Buffer buffer;
    for (uint64_t f = 0; f < depth; ++f) buffer.frames[f] = i * 1000 + f;
    bool is_new;
    kept += stacks.Intern(&buffer, depth, 0, 0, &is_new) != 0;
  }
  return kept;
}

SessionSizes GrowingSizes() {
  SessionSizes sizes = SmallSizes();
  sizes.stack_index = 1 << 15;
  sizes.stack_growth = 3 << 17;  // 3 MiB
  return sizes;
}

// Blocks of memory behind a session's file, in bytes.
uint64_t MemoryOf(const ScratchSession& session) {
  struct stat st;
  EXPECT_EQ(fstat(session.fd(), &st), 0);
  return static_cast<uint64_t>(st.st_blocks) * 512;
}

TEST(ArenaGrowthTest, ArenaTakesMemoryWhenItIsFullAndNotBefore) {
  ScratchSession session(GrowingSizes());
  const uint64_t before = MemoryOf(session);
  EXPECT_LT(before, uint64_t{1} << 20);
  EXPECT_EQ(session.control().stack_arena_backed.load(), SmallSizes().stack_arena);
  EXPECT_EQ(InternDistinct(session.map().stacks(), 1, 10000, 30), 10000u);  // 2.4 MiB
  EXPECT_GE(MemoryOf(session), before + (2 << 20));
  EXPECT_EQ(session.control().stack_growth_errno.load(), 0u);
  StackFrames stack;
  const uint64_t last = session.control().stack_arena_used.load() - 30;
  ASSERT_TRUE(ReadStack(session.map(), static_cast<uint32_t>(last), &stack));
  EXPECT_EQ(stack.frames[29], 10000u * 1000 + 29);
}

TEST(ArenaGrowthTest, GrowthEndsAtTheSectionAndWhatIsThereStays) {
  ScratchSession session(GrowingSizes());
  const StackTable stacks = session.map().stacks();
  const uint32_t kept = InternDistinct(stacks, 1, 20000, 30);
  const uint64_t words = session.map().count(kStackArena);
  EXPECT_GE(kept, words / 31 - 1);
  EXPECT_LT(kept, 20000u);
  EXPECT_EQ(session.control().stack_arena_backed.load(), words);
  EXPECT_EQ(InternDistinct(stacks, 1, kept, 30), kept) << "known stacks keep their ids";
}

TEST(ArenaGrowthTest, ThreadsThatGrowItAtOnceShareOneArena) {
  ScratchSession session(GrowingSizes());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      EXPECT_EQ(InternDistinct(session.map().stacks(), 1 + t * 1500, 3000, 30), 3000u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(InternDistinct(session.map().stacks(), 1, 7500, 30), 7500u);
  EXPECT_LE(session.control().stack_arena_backed.load(), session.map().count(kStackArena));
}

TEST(ArenaGrowthTest, IdsBehindTheMemoryReadAsNothing) {
  ScratchSession session(GrowingSizes());
  const uint64_t before = MemoryOf(session);
  StackFrames stack;
  for (uint32_t id = 0; id < session.map().count(kStackArena); id += 512) {
    EXPECT_FALSE(ReadStack(session.map(), id, &stack)) << id;
  }
  EXPECT_EQ(MemoryOf(session), before) << "reading took memory";
}

TEST(ArenaGrowthTest, RefusedGrowthIsAFullArenaAndLeavesErrnoAlone) {
  ScratchSession session(GrowingSizes());
  session.control().stack_growth_errno.store(EINVAL);  // as a kernel before 5.14 makes it
  errno = 77;
  EXPECT_LT(InternDistinct(session.map().stacks(), 1, 1000, 30), 1000u);
  EXPECT_EQ(errno, 77);
}

// The fate of a plain write there would be SIGBUS, which the child's exit code would tell.
TEST(ArenaGrowthTest, FullFileSystemEndsTheGrowthAndNotTheProcess) {
  ScratchDirectory directory;
  const int result = InOwnMounts([&] {
    if (!MountTmpfs(directory.path(), "size=20m,mode=0700")) return 255;
    CreatedSession session;
    if (CreateSession(GrowingSizes(), "", &session) != 0) return 1;
    if (session.map.count(kStackArena) == SmallSizes().stack_arena) return 2;
    const std::string filler = directory.path() + "/filler";
    const int fd = open(filler.c_str(), O_CREAT | O_RDWR, 0600);
    for (off_t size = 0; posix_fallocate(fd, size, 4096) == 0;) size += 4096;
    errno = 77;
    const uint32_t kept = InternDistinct(session.map.stacks(), 1, 1000, 30);
    if (errno != 77) return 3;
    if (kept == 0 || kept == 1000) return 4;
    return session.map.control().stack_growth_errno.load() == EFAULT ? 0 : 5;
  });
  if (result < 0) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  EXPECT_EQ(result, 0);
}

TEST(InternTableThreadsTest, ThreadsThatInternTheSameStacksGetTheSameIds) {
  SessionSizes sizes = SmallSizes();
  sizes.stack_index = 4096;
  sizes.stack_arena = 1 << 16;
  ScratchSession session(sizes);
  constexpr uint32_t kStacks = 500;
  std::vector<std::vector<uint32_t>> ids(4, std::vector<uint32_t>(kStacks));
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < kStacks; ++i) {
        StackTable::Buffer buffer;
        for (uint64_t f = 0; f < 20; ++f) buffer.frames[f] = i * 1000 + f;
        bool is_new;
        ids[t][i] = session.map().stacks().Intern(&buffer, 20, 0, 0, &is_new);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t t = 1; t < 4; ++t) EXPECT_EQ(ids[t], ids[0]);
  EXPECT_EQ(std::set<uint32_t>(ids[0].begin(), ids[0].end()).size(), kStacks);
  StackFrames stack;
  ASSERT_TRUE(ReadStack(session.map(), ids[0][7], &stack));
  EXPECT_EQ(stack.frames[3], 7003u);
}

}  // namespace
}  // namespace gmt::session
