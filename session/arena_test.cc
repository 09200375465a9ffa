#include "session/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <thread>
#include <vector>

#include "session/arena_reader.h"
#include "session/testing/session_fixture.h"

namespace gmt::session {
namespace {

TEST(ArenaTest, PlacesFollowOneAnotherAndZeroIsNone) {
  ScratchSession session;
  const Arena arena = session.map().arena();
  EXPECT_EQ(arena.Append(3), 1u);
  EXPECT_EQ(arena.Append(1), 4u);
  EXPECT_EQ(arena.Append(1), 5u);
  EXPECT_EQ(arena.Find(0, 1), nullptr);
  EXPECT_EQ(arena.Find(5, 1), arena.at(5));
}

TEST(ArenaTest, WordsOutsideAreNotFound) {
  ScratchSession session;
  const Arena arena = session.map().arena();
  const uint64_t words = session.map().count(kArena);
  EXPECT_NE(arena.Find(1, words - 1), nullptr);
  EXPECT_EQ(arena.Find(1, words), nullptr);
  EXPECT_EQ(arena.Find(words, 0), nullptr);
  EXPECT_EQ(arena.Find(~uint64_t{0}, 2), nullptr);
  EXPECT_EQ(arena.Find(2, ~uint64_t{0}), nullptr);
}

TEST(ArenaTest, CorruptUseCountDoesNotMakeTheWriterLeaveTheArena) {
  ScratchSession session;
  const uint64_t words = session.map().count(kArena);
  for (const uint64_t used : {words, words - 1, ~uint64_t{0}, ~uint64_t{0} - 3, ~uint64_t{0} - 9}) {
    session.control().arena_used.store(used);
    EXPECT_EQ(session.map().arena().Append(9), 0u) << used;
  }
}

// Adds `count` different stacks of `depth` frames. Returns how many of them got an id.
uint32_t AddDistinct(const StackTable& stacks, uint64_t first, uint32_t count, uint32_t depth) {
  uint32_t kept = 0;
  for (uint64_t i = first; i < first + count; ++i) {
    std::vector<uint64_t> frames(depth);
    for (uint64_t f = 0; f < depth; ++f) frames[f] = i * 1000 + f;
    kept += AddStack(stacks, frames) != 0 ? 1 : 0;
  }
  return kept;
}

SessionSizes GrowingArenaSizes() {
  SessionSizes sizes = SmallSizes();
  sizes.stack_index = 1 << 15;
  sizes.arena_growth = 3 << 17;  // 3 MiB
  return sizes;
}

// Returns the words of a native stack that shares no frames.
constexpr uint64_t WordsOfStack(uint64_t depth) {
  return sizeof(StackHeader) / sizeof(uint64_t) + depth;
}

// Returns the bytes of memory allocated to a session's file.
uint64_t MemoryOf(const ScratchSession& session) {
  struct stat st;
  EXPECT_EQ(fstat(session.fd(), &st), 0);
  return static_cast<uint64_t>(st.st_blocks) * 512;
}

TEST(ArenaGrowthTest, ArenaAllocatesMemoryOnlyWhenItIsFull) {
  ScratchSession session(GrowingArenaSizes());
  const uint64_t before = MemoryOf(session);
  EXPECT_LT(before, uint64_t{1} << 20);
  EXPECT_EQ(session.control().arena_backed.load(), SmallSizes().arena);
  EXPECT_EQ(AddDistinct(session.map().stacks(), 1, 10000, 30), 10000u);  // 2.4 MiB
  EXPECT_GE(MemoryOf(session), before + (2 << 20));
  EXPECT_EQ(session.control().arena_errno.load(), 0u);
  StackFrames stack;
  const uint64_t last = session.control().arena_used.load() - WordsOfStack(30) + 1;
  ASSERT_TRUE(ReadStack(session.map(), static_cast<uint32_t>(last), &stack));
  EXPECT_EQ(stack.frames[29].address, 10000u * 1000 + 29);
}

TEST(ArenaGrowthTest, GrowthEndsAtTheSectionAndExistingEntriesStay) {
  ScratchSession session(GrowingArenaSizes());
  const StackTable stacks = session.map().stacks();
  const uint32_t kept = AddDistinct(stacks, 1, 20000, 30);
  const uint64_t words = session.map().count(kArena);
  EXPECT_GE(kept, words / WordsOfStack(30) - 1);
  EXPECT_LT(kept, 20000u);
  EXPECT_EQ(session.control().arena_backed.load(), words);
  EXPECT_EQ(AddDistinct(stacks, 1, kept, 30), kept) << "known stacks keep their ids";
}

TEST(ArenaGrowthTest, ThreadsGrowTheArenaConcurrently) {
  ScratchSession session(GrowingArenaSizes());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back(
        [&, t] { EXPECT_EQ(AddDistinct(session.map().stacks(), 1 + t * 1500, 3000, 30), 3000u); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(AddDistinct(session.map().stacks(), 1, 7500, 30), 7500u);
  EXPECT_LE(session.control().arena_backed.load(), session.map().count(kArena));
}

TEST(ArenaGrowthTest, IdsBeyondTheMemoryAreNotFound) {
  ScratchSession session(GrowingArenaSizes());
  const uint64_t before = MemoryOf(session);
  StackFrames stack;
  for (uint32_t id = 0; id < session.map().count(kArena); id += 512) {
    EXPECT_FALSE(ReadStack(session.map(), id, &stack)) << id;
  }
  EXPECT_EQ(MemoryOf(session), before) << "reading allocated memory";
}

TEST(ArenaGrowthTest, FailedGrowthMeansAFullArenaAndPreservesErrno) {
  ScratchSession session(GrowingArenaSizes());
  session.control().arena_errno.store(EINVAL);  // as a kernel before 5.14 would set it
  errno = 77;
  EXPECT_LT(AddDistinct(session.map().stacks(), 1, 1000, 30), 1000u);
  EXPECT_EQ(errno, 77);
}

// A plain write to the unbacked pages would raise SIGBUS, which would show in the child's exit
// code.
TEST(ArenaGrowthTest, FullFileSystemEndsGrowthButNotTheProcess) {
  ScratchDirectory directory;
  const int result = InOwnMounts([&] {
    if (!MountTmpfs(directory.path(), "size=20m,mode=0700")) return 255;
    CreatedSession session;
    if (CreateSession(GrowingArenaSizes(), "", &session) != 0) return 1;
    if (session.map.count(kArena) == SmallSizes().arena) return 2;
    const std::string filler = directory.path() + "/filler";
    const int fd = open(filler.c_str(), O_CREAT | O_RDWR, 0600);
    for (off_t size = 0; posix_fallocate(fd, size, 4096) == 0;) size += 4096;
    errno = 77;
    const uint32_t kept = AddDistinct(session.map.stacks(), 1, 1000, 30);
    if (errno != 77) return 3;
    if (kept == 0 || kept == 1000) return 4;
    return session.map.control().arena_errno.load() == EFAULT ? 0 : 5;
  });
  if (result < 0) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace gmt::session
