// Tests of the live table beyond its first level: when a level gets memory, which threads may use
// it, and what still works if there is no memory.

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::session {
namespace {

// Sizes with a first level of `live` entries and levels of 4, 16 and 64 times as many.
SessionSizes GrowingLiveSizes(uint64_t live = 64) {
  SessionSizes sizes = SmallSizes();
  sizes.live = live;
  sizes.live_levels = 3;
  return sizes;
}

constexpr uint64_t AddressOf(uint64_t n) { return 0x7f0000000000 + n * 512; }

LiveValue SelfCheckingValue(uint64_t n) {
  LiveValue live;
  live.ticket = n;
  live.size = n * 3;
  live.stream = ~n;
  live.stack = static_cast<uint32_t>(n);
  return live;
}

bool Insert(const LiveTable& table, uint64_t n) {
  return table.Insert(Space::kDevice, AddressOf(n), SelfCheckingValue(n)) ==
         LiveTable::Result::kDone;
}

// Returns the size of each entry by ticket. Checks that each entry is complete and occurs once.
std::map<uint64_t, uint64_t> EntriesOf(const LiveTable& table) {
  std::map<uint64_t, uint64_t> contents;
  table.Scan([&](Space space, uint64_t value, const LiveValue& live) {
    EXPECT_EQ(space, Space::kDevice);
    EXPECT_EQ(value, AddressOf(live.ticket));
    EXPECT_EQ(live, SelfCheckingValue(live.ticket));
    EXPECT_TRUE(contents.emplace(live.ticket, live.size).second) << live.ticket << " occurs twice";
  });
  return contents;
}

uint64_t MemoryOf(int fd) {
  struct stat st;
  EXPECT_EQ(fstat(fd, &st), 0);
  return static_cast<uint64_t>(st.st_blocks) * 512;
}

uint32_t LevelsWithMemory(const Control& control) {
  return control.live_levels.load() & ~kLiveGrowthEnded;
}

TEST(LiveGrowthTest, LevelGetsMemoryOnlyWhenAllEarlierLevelsAreFull) {
  ScratchSession session(GrowingLiveSizes(1024));
  const LiveTable table = session.map().live();
  const uint64_t before = MemoryOf(session.fd());
  for (uint64_t n = 0; n < 700; ++n) ASSERT_TRUE(Insert(table, n));
  EXPECT_EQ(session.control().live_levels.load(), 0u);
  EXPECT_EQ(MemoryOf(session.fd()), before);
  for (uint64_t n = 700; n < 1025; ++n) ASSERT_TRUE(Insert(table, n));
  EXPECT_EQ(session.control().live_levels.load(), 1u);
  EXPECT_EQ(MemoryOf(session.fd()), before + 4096 * LiveLevel::kStride);
  for (uint64_t n = 1025; n < 60000; ++n) ASSERT_TRUE(Insert(table, n));
  EXPECT_EQ(session.control().live_levels.load(), 3u);
  EXPECT_EQ(EntriesOf(table).size(), 60000u);
  EXPECT_EQ(session.map().MemoryBytes(), MemoryOf(session.fd()));
}

TEST(LiveGrowthTest, FullTableRejectsInsertsAndKeepsItsEntries) {
  ScratchSession session(GrowingLiveSizes());
  const LiveTable table = session.map().live();
  uint64_t n = 0;
  while (Insert(table, n)) ++n;
  EXPECT_GT(n, 64u + 256 + 1024 + 2048);
  EXPECT_EQ(session.control().live_levels.load(), 3u) << "growth must not have failed";
  EXPECT_EQ(EntriesOf(table).size(), n);
  for (uint64_t i = 0; i < n; ++i) ASSERT_TRUE(table.Erase(Space::kDevice, AddressOf(i))) << i;
  EXPECT_TRUE(EntriesOf(table).empty());
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(Insert(table, n + i));
}

// The number of live entries crosses the boundaries of all levels in both directions.
TEST(LiveGrowthTest, AgreesWithAMapOverRandomCallsAcrossLevels) {
  ForEachSeed({1}, [](uint32_t seed) {
    std::mt19937_64 random(seed);
    ScratchSession session(GrowingLiveSizes());
    const LiveTable table = session.map().live();
    std::map<uint64_t, uint64_t> oracle;
    for (int phase = 0; phase < 12; ++phase) {
      const uint64_t wanted = random() % 4000;
      for (int i = 0; i < 20000; ++i) {
        const uint64_t n = random() % 6000;
        const bool grows = random() % 100 < (oracle.size() < wanted ? 70 : 30);
        if (grows && (oracle.size() < 4500 || oracle.count(n) != 0)) {
          ASSERT_TRUE(Insert(table, n)) << oracle.size();
          oracle[n] = n * 3;
        } else {
          LiveValue live;
          const bool there = oracle.erase(n) == 1;
          ASSERT_EQ(table.Find(Space::kDevice, AddressOf(n), &live), there);
          ASSERT_EQ(table.Erase(Space::kDevice, AddressOf(n), &live), there);
          if (there) {
            ASSERT_EQ(live, SelfCheckingValue(n));
          }
        }
      }
      ASSERT_EQ(EntriesOf(table), oracle);
    }
    EXPECT_EQ(session.control().live_levels.load(), 3u);
  });
}

TEST(LiveGrowthTest, ReferencesAreCountedInEveryLevel) {
  ScratchSession session(GrowingLiveSizes());
  const LiveTable table = session.map().live();
  for (uint64_t n = 0; n < 1000; ++n) {
    ASSERT_TRUE(Insert(table, n));
    ASSERT_TRUE(table.AddReference(Space::kDevice, AddressOf(n)));
  }
  for (uint64_t n = 0; n < 1000; ++n) {
    EXPECT_TRUE(table.DropReference(Space::kDevice, AddressOf(n))) << n;
    EXPECT_FALSE(table.DropReference(Space::kDevice, AddressOf(n))) << n;
  }
}

TEST(LiveGrowthTest, ThreadsGrowTheTableConcurrently) {
  constexpr uint64_t kGrowingThreads = 4, kEach = 12000;
  ScratchSession session(GrowingLiveSizes(1024));
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kGrowingThreads; ++t) {
    threads.emplace_back([&, t] {
      const LiveTable table = session.map().live();
      for (uint64_t i = 0; i < kEach; ++i) EXPECT_TRUE(Insert(table, t * kEach + i));
      for (uint64_t i = 0; i < kEach; i += 2)
        EXPECT_TRUE(table.Erase(Space::kDevice, AddressOf(t * kEach + i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(EntriesOf(session.map().live()).size(), kGrowingThreads * kEach / 2);
}

TEST(LiveGrowthTest, ReaderSeesCompleteEntriesDuringGrowth) {
  ScratchSession session(GrowingLiveSizes(1024));
  OpenedSession opened = OpenSession(session.fd());
  ASSERT_EQ(opened.error, nullptr);
  std::atomic<uint64_t> done{0};
  std::thread writer([&] {
    const LiveTable table = session.map().live();
    for (uint64_t n = 0; n < 40000; ++n) {
      EXPECT_TRUE(Insert(table, n));
      done.store(n + 1, std::memory_order_release);
    }
  });
  for (uint64_t before = 0; before < 40000;) {
    before = done.load(std::memory_order_acquire);
    EXPECT_GE(EntriesOf(opened.map.live()).size(), before)
        << "a scan contains all entries that existed before it";
  }
  writer.join();
  CloseSession(&opened);
}

TEST(LiveGrowthTest, CorruptLevelCountDoesNotMakeAReaderLeaveTheLevels) {
  ScratchSession session(GrowingLiveSizes());
  for (uint64_t n = 0; n < 40; ++n) Insert(session.map().live(), n);
  OpenedSession opened = OpenSession(session.fd());
  for (const uint32_t levels : {4u, 1000u, ~uint32_t{0}, kLiveGrowthEnded}) {
    session.control().live_levels.store(levels);
    EXPECT_EQ(EntriesOf(opened.map.live()).size(), 40u);
  }
  CloseSession(&opened);
}

// A plain write to the unbacked pages would raise SIGBUS, which would show in the child's exit
// code.
TEST(LiveGrowthTest, FullFileSystemEndsGrowthAndGetsItsMemoryBack) {
  ScratchDirectory directory;
  const int result = InOwnMounts([&] {
    if (!MountTmpfs(directory.path(), "size=40m,mode=0700")) return 255;
    CreatedSession session;
    if (CreateSession(GrowingLiveSizes(1024), "", &session) != 0) return 1;
    if (session.map.count(kLiveLevel3) == 0) return 2;
    const Control& control = session.map.control();
    // Room for half of the first further level.
    const std::string filler = directory.path() + "/filler";
    const int fd = open(filler.c_str(), O_CREAT | O_RDWR, 0600);
    off_t size = 0;
    while (posix_fallocate(fd, size, 4096) == 0) size += 4096;
    if (ftruncate(fd, size - 37 * 4096) != 0) return 3;
    struct statvfs before, after;
    statvfs(directory.path().c_str(), &before);

    std::atomic<uint64_t> kept{0}, refused{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const LiveTable table = session.map.live();
        errno = 77;
        for (uint64_t i = 0; i < 1000; ++i) ++(Insert(table, t * 1000 + i) ? kept : refused);
        if (errno != 77) refused = 1 << 20;
      });
    }
    for (std::thread& thread : threads) thread.join();
    statvfs(directory.path().c_str(), &after);
    if (kept + refused != 4000 || kept > 1024 || kept < 512) return 4;
    if (control.live_levels.load() != kLiveGrowthEnded || control.live_errno.load() != EFAULT)
      return 5;
    if (after.f_bavail != before.f_bavail) return 6;
    // Space that becomes free later is left to the program.
    if (ftruncate(fd, 0) != 0 || EntriesOf(session.map.live()).size() != kept) return 7;
    while (Insert(session.map.live(), 10000 + kept)) ++kept;
    return LevelsWithMemory(control) == 0 ? 0 : 8;
  });
  if (result < 0) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  EXPECT_EQ(result, 0);
}

TEST(LiveGrowthTest, SmallFileSystemGetsFewerLevels) {
  ScratchDirectory directory;
  const int result = InOwnMounts([&] {
    if (!MountTmpfs(directory.path(), "size=300m,mode=0700")) return 255;
    CreatedSession session;
    if (CreateSession(SessionSizes(), "", &session) != 0) return 1;
    if (session.map.count(kLiveLevel1) != 4 * SessionSizes().live) return 2;
    if (session.map.count(kLiveLevel2) != 0 || session.map.count(kLiveLevel3) != 0) return 3;
    return CheckHeader(session.map.header(), session.size) == nullptr ? 0 : 4;
  });
  if (result < 0) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  EXPECT_EQ(result, 0);
}

// Locking a mapping faults it in, which would allocate memory for the unbacked part of the file.
TEST(LiveGrowthTest, ProgramThatLocksItsMemoryDoesNotAllocateTheLevels) {
  ScratchSession session(GrowingLiveSizes(4096));
  const uint64_t before = MemoryOf(session.fd());
  const pid_t child = fork();
  if (child == 0) {
    if (mlockall(MCL_CURRENT) != 0 || mlockall(MCL_CURRENT | MCL_FUTURE) != 0) _exit(255);
    if (MemoryOf(session.fd()) != before) _exit(1);
    CreatedSession made_locked;
    if (CreateSession(GrowingLiveSizes(4096), "", &made_locked) != 0) _exit(2);
    unlink(made_locked.path);
    if (MemoryOf(made_locked.fd) != before) _exit(3);
    for (uint64_t n = 0; n < 20000; ++n) {
      if (!Insert(made_locked.map.live(), n)) _exit(4);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 255)
    GTEST_SKIP() << "locking memory is not permitted here";
  EXPECT_EQ(status, 0);
}

// ---- Killed -------------------------------------------------------------------------------------

constexpr uint64_t kWriters = 3, kPerWriter = 20000;

// Written by the child: the number of entries that each writer has inserted.
struct InsertedEntries {
  std::atomic<uint64_t> entries[kWriters];
};

void WriteFrom(const LiveTable& table, uint64_t writer, uint64_t from,
               InsertedEntries* acknowledged) {
  for (uint64_t i = from; i < kPerWriter; ++i) {
    if (!Insert(table, writer * kPerWriter + i)) _exit(1);
    acknowledged->entries[writer].store(i + 1, std::memory_order_release);
  }
}

// A kill is not a race that a sanitizer could find, and the following writers are slow under one.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kUsualKills = 5;
#else
constexpr uint32_t kUsualKills = 60;
#endif

[[noreturn]] void InsertUntilKilled(const SessionMap& map, InsertedEntries* acknowledged) {
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kWriters; ++w)
    threads.emplace_back([&, w] { WriteFrom(map.live(), w, 0, acknowledged); });
  for (std::thread& thread : threads) thread.join();
  while (true) pause();
}

// Maps the session as another writer would: the whole file is writable.
SessionMap MapSecondTime(const ScratchSession& session) {
  void* base = mmap(nullptr, session.size(), PROT_READ | PROT_WRITE, MAP_SHARED, session.fd(), 0);
  EXPECT_NE(base, MAP_FAILED);
  return SessionMap(base, reinterpret_cast<Control*>(static_cast<char*>(base) + kControlOffset));
}

TEST(LiveGrowthTest, KillKeepsInsertedEntriesAndTheNextWriterContinues) {
  const char* wanted = getenv("GMT_TEST_KILLS");
  const uint32_t kills =
      wanted != nullptr ? static_cast<uint32_t>(strtoul(wanted, nullptr, 10)) : kUsualKills;
  void* shared = mmap(nullptr, sizeof(InsertedEntries), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int at_level[1 + kLiveLevels] = {};
  ForEachSeed(SeedsUpTo(kills), [&](uint32_t seed) {
    std::mt19937 random(seed);
    ScratchSession session(GrowingLiveSizes(1024));
    auto* acknowledged = new (shared) InsertedEntries();
    const pid_t child = fork();
    if (child == 0) InsertUntilKilled(session.map(), acknowledged);
    const unsigned root = random() % 140;  // early moments are more likely than late ones
    std::this_thread::sleep_for(std::chrono::microseconds(root * root));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    ASSERT_LE(LevelsWithMemory(session.control()), kLiveLevels);
    ++at_level[LevelsWithMemory(session.control())];

    const SessionMap again = MapSecondTime(session);
    std::map<uint64_t, uint64_t> contents = EntriesOf(again.live());
    uint64_t put_in = 0;
    for (uint64_t w = 0; w < kWriters; ++w) {
      const uint64_t entries = acknowledged->entries[w].load();
      put_in += entries;
      for (uint64_t i = 0; i < entries; ++i)
        ASSERT_EQ(contents.count(w * kPerWriter + i), 1u) << "writer " << w << ", entry " << i;
    }
    EXPECT_LE(contents.size(), put_in + kWriters);
    for (uint64_t w = 0; w < kWriters; ++w)
      WriteFrom(again.live(), w, acknowledged->entries[w].load(), acknowledged);
    EXPECT_EQ(EntriesOf(again.live()).size(), kWriters * kPerWriter);
    munmap(const_cast<Header*>(&again.header()), session.size());
  });
  munmap(shared, sizeof(InsertedEntries));
  std::printf("kills by further levels with memory: %d %d %d %d\n", at_level[0], at_level[1],
              at_level[2], at_level[3]);
}

}  // namespace
}  // namespace gmt::session
