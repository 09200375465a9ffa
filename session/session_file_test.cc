#include "session/session_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "session/testing/session_fixture.h"

namespace gmt::session {
namespace {

std::vector<std::pair<std::string, std::string>> Pairs(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  ForEachInfo(text, [&](std::string_view name, std::string_view value) {
    pairs.emplace_back(name, value);
  });
  return pairs;
}

TEST(SessionInfoTest, PairsAreReadBackInOrder) {
  char buffer[64];
  InfoWriter info(buffer, sizeof(buffer));
  info.Add("arg", "python");
  info.Add("arg", "");
  info.Add("cwd", "/a b");
  EXPECT_EQ(Pairs(info.text()), (std::vector<std::pair<std::string, std::string>>{
                                    {"arg", "python"}, {"arg", ""}, {"cwd", "/a b"}}));
}

TEST(SessionInfoTest, PairThatDoesNotFitIsOmitted) {
  char buffer[16];
  InfoWriter info(buffer, sizeof(buffer));
  info.Add("a", "1234567890");
  info.Add("b", "too much");
  info.Add("c", "");
  EXPECT_EQ(Pairs(info.text()).size(), 2u);
}

TEST(SessionInfoTest, TruncatedTextEndsAtTheLastCompletePair) {
  const std::string text("a\0001\0b\0002", 7);
  EXPECT_EQ(Pairs(text).size(), 1u);
  EXPECT_TRUE(Pairs("").empty());
  EXPECT_TRUE(Pairs(std::string(100, '\0')).empty());
}

TEST(SessionFileTest, CreatedSessionOpensWithTheSameSectionsAndIdentity) {
  ScratchSession session(SmallSizes(), std::string_view("cwd\0/x\0", 7));
  OpenedSession opened = OpenSession(session.fd());
  ASSERT_EQ(opened.error, nullptr);
  EXPECT_EQ(opened.map.header().pid, static_cast<uint64_t>(getpid()));
  EXPECT_EQ(opened.map.header().start_ticks, StartTicks(static_cast<uint64_t>(getpid())));
  EXPECT_EQ(opened.map.count(kRing), SmallSizes().ring);
  EXPECT_EQ(Pairs({opened.map.section<char>(kInfo), opened.map.count(kInfo)}).size(), 1u);
  CloseSession(&opened);
}

TEST(SessionFileTest, ReaderSeesWrites) {
  ScratchSession session;
  OpenedSession opened = OpenSession(session.fd());
  Record record, read;
  record.kind = Kind::kAlloc;
  record.value = 77;
  const RingWriter ring = session.map().ring_writer();
  ring.Commit(ring.Reserve(), Pack(record));
  RingReader reader = opened.map.ring_reader();
  uint64_t ticket;
  RingReader::Lost lost;
  ASSERT_EQ(reader.Next(&read, &ticket, &lost), RingReader::Outcome::kRecord);
  EXPECT_EQ(read, record);
  CloseSession(&opened);
}

TEST(SessionFileTest, FileIsPrivateToTheUserAndNamedAfterTheProcess) {
  ScratchSession session;
  struct stat st;
  ASSERT_EQ(stat(session.path().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_NE(session.path().find("/" + std::to_string(getpid()) + "-"), std::string::npos);
}

TEST(SessionFileTest, ReaderCanWriteOnlyTheControlPage) {
  ScratchSession session;
  OpenedSession opened = OpenSession(session.fd());
  opened.map.control().finished.store(Handshake::kDone);
  EXPECT_EQ(session.control().finished.load(), Handshake::kDone);
  EXPECT_DEATH(opened.map.section<Slot>(kRing)->commit.store(1), "");
  CloseSession(&opened);
}

TEST(SessionFileTest, HeaderThatChangesAfterTheCheckIsNotSeen) {
  ScratchSession session;
  OpenedSession opened = OpenSession(session.fd());
  const_cast<Header&>(session.map().header()).sections[kRing].count = uint64_t{1} << 40;
  EXPECT_EQ(opened.map.count(kRing), SmallSizes().ring);
  CloseSession(&opened);
}

// Opens a session with a modified header. Returns the error.
std::string ErrorAfter(const std::function<void(Header*)>& change,
                       const SessionSizes& sizes = SmallSizes()) {
  ScratchSession session(sizes);
  change(reinterpret_cast<Header*>(session.bytes()));
  OpenedSession opened = OpenSession(session.fd());
  const std::string error = opened.error == nullptr ? "" : opened.error;
  EXPECT_EQ(static_cast<bool>(opened.map), error.empty());
  CloseSession(&opened);
  return error;
}

TEST(SessionFileTest, InvalidHeaderIsRejected) {
  EXPECT_EQ(ErrorAfter([](Header*) {}), "");
  EXPECT_EQ(ErrorAfter([](Header* h) { h->magic[0] = 'X'; }), "it is not a gpumemtrace session");
  EXPECT_EQ(ErrorAfter([](Header* h) { h->abi_major += 1; }),
            "it was made by an incompatible release");
  EXPECT_EQ(ErrorAfter([](Header* h) { h->byte_order = 0x04030201; }), "it has another byte order");
  EXPECT_NE(ErrorAfter([](Header* h) { h->file_size += 1; }), "");
  EXPECT_NE(ErrorAfter([](Header* h) { h->section_count = 1; }), "");
  EXPECT_NE(ErrorAfter([](Header* h) { h->sections[kRing].count *= 1024; }), "");
  EXPECT_NE(ErrorAfter([](Header* h) { h->sections[kRing].count = 3; }), "");
  EXPECT_NE(ErrorAfter([](Header* h) { h->sections[kRing].offset = 0; }), "");
  EXPECT_NE(ErrorAfter([](Header* h) { h->sections[kModules].count = ~uint64_t{0}; }), "");
  EXPECT_NE(ErrorAfter([](Header* h) { h->sections[kLiveKeys].count /= 2; }), "");
}

// The session of this test has further levels of 256, 1,024 and 4,096 entries.
std::string ErrorOfLevelsAfter(const std::function<void(Header*)>& change) {
  SessionSizes sizes = SmallSizes();
  sizes.live = 64;
  sizes.live_levels = 3;
  return ErrorAfter(change, sizes);
}

TEST(SessionFileTest, HeaderWithInvalidLevelsIsRejected) {
  EXPECT_EQ(ErrorOfLevelsAfter([](Header*) {}), "");
  EXPECT_EQ(ErrorOfLevelsAfter([](Header* h) { h->sections[kLiveLevel3].count = 0; }), "");
  for (const uint32_t id : {kLiveLevel1, kLiveLevel2, kLiveLevel3}) {
    SCOPED_TRACE(id);
    const auto section = [id](Header* h) -> Section& { return h->sections[id]; };
    EXPECT_NE(ErrorOfLevelsAfter([&](Header* h) { section(h).count *= 64; }), "");
    EXPECT_NE(ErrorOfLevelsAfter([&](Header* h) { section(h).count = ~uint64_t{0}; }), "");
    EXPECT_NE(ErrorOfLevelsAfter([&](Header* h) { section(h).count = uint64_t{1} << 62; }), "");
    EXPECT_NE(ErrorOfLevelsAfter([&](Header* h) { section(h).count -= 1; }), "");
    EXPECT_NE(ErrorOfLevelsAfter([&](Header* h) { section(h).count = 4; }), "");
    EXPECT_NE(ErrorOfLevelsAfter([&](Header* h) { section(h).stride = 8; }), "");
    EXPECT_NE(ErrorOfLevelsAfter([&](Header* h) { section(h).offset += 8; }), "");
    EXPECT_NE(ErrorOfLevelsAfter([&](Header* h) { section(h).offset = 0; }), "");
    EXPECT_NE(ErrorOfLevelsAfter([&](Header* h) { section(h).offset = h->file_size + 4096; }), "");
  }
  EXPECT_NE(ErrorOfLevelsAfter([](Header* h) { h->sections[kLiveLevel1].count = 0; }), "")
      << "a level without the previous one";
}

// Minor version 1 has eleven sections; the header words after them are undefined.
TEST(SessionFileTest, SessionFromBeforeTheTableGrewIsRead) {
  ScratchSession session;
  LiveValue live;
  live.size = 7;
  session.map().live().Insert(Space::kDevice, 0x1000, live);
  auto* header = reinterpret_cast<Header*>(session.bytes());
  header->abi_minor = 1;
  header->section_count = kFirstSectionCount;
  for (uint32_t id = kFirstSectionCount; id < kSectionCount; ++id)
    header->sections[id] = {~uint64_t{0}, 7, ~uint64_t{0}};
  session.control().live_levels.store(3);
  OpenedSession opened = OpenSession(session.fd());
  ASSERT_EQ(opened.error, nullptr) << opened.error;
  int entries = 0;
  opened.map.live().Scan([&](Space, uint64_t value, const LiveValue&) {
    EXPECT_EQ(value, 0x1000u);
    ++entries;
  });
  EXPECT_EQ(entries, 1);
  CloseSession(&opened);
}

TEST(SessionFileTest, FileThatIsNotASessionIsRejected) {
  const int empty = memfd_create("empty", 0);
  EXPECT_NE(OpenSession(empty).error, nullptr);
  EXPECT_EQ(ftruncate(empty, 1 << 20), 0);
  EXPECT_NE(OpenSession(empty).error, nullptr);
  EXPECT_NE(OpenSession(-1).error, nullptr);
  close(empty);
}

TEST(SessionFileTest, DirectoryOfAnotherUserIsSkipped) {
  ScratchDirectory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0777), 0);
  CreatedSession session;
  ASSERT_EQ(CreateSession(SmallSizes(), "", &session), 0);
  EXPECT_NE(std::string(session.path).rfind(directory.path(), 0), 0u);
  if (session.path[0] != '\0') unlink(session.path);
  munmap(session.base, session.size);
  close(session.fd);
}

// The session has about 35 MiB and is halved to 18, 9 and 5 MiB.
TEST(SessionFileTest, SmallTmpfsGetsASmallerSession) {
  ScratchDirectory directory;
  const int halvings = InOwnMounts([&] {
    CreatedSession session;
    if (!MountTmpfs(directory.path(), "size=12m,mode=0700")) return 255;
    if (CreateSession(SessionSizes(), "", &session) != 0) return 100;
    if (std::string(session.path).rfind(directory.path(), 0) != 0) return 101;
    int n = 0;
    for (uint64_t ring = SessionSizes().ring; ring > session.map.count(kRing); ring /= 2) ++n;
    return n;
  });
  if (halvings < 0) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  EXPECT_GE(halvings, 1);
  EXPECT_LE(halvings, 3);
}

TEST(SessionFileTest, FullDirectoriesLeadToAMemfdAndNoFiles) {
  ScratchDirectory directory;
  const int result = InOwnMounts([&] {
    unsetenv("XDG_RUNTIME_DIR");
    if (!MountTmpfs(directory.path(), "size=64k,mode=0700") || !MountTmpfs("/dev/shm", "size=64k"))
      return 255;
    CreatedSession session;
    if (CreateSession(SessionSizes(), "", &session) != 0) return 1;
    if (session.path[0] != '\0') return 2;
    if (session.map.count(kRing) != SessionSizes().ring) return 3;
    return std::filesystem::is_empty(directory.path()) ? 0 : 4;
  });
  if (result < 0) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  EXPECT_EQ(result, 0);
}

TEST(SessionFileTest, NewSessionUsesNoMoreMemoryThanDocumented) {
  ScratchSession session{SessionSizes()};
  struct stat st;
  ASSERT_EQ(fstat(session.fd(), &st), 0);
  EXPECT_LE(st.st_blocks * 512, 32 << 20);
  EXPECT_GE(st.st_blocks * 512, 16 << 20) << "no memory is reserved";
}

TEST(SessionFileTest, SessionOnASmallFileSystemLeavesTheRestToTheProgram) {
  ScratchDirectory directory;
  const int result = InOwnMounts([&] {
    if (!MountTmpfs(directory.path(), "size=64m,mode=0700")) return 255;
    CreatedSession session;
    if (CreateSession(SessionSizes(), "", &session) != 0) return 1;
    if (session.map.count(kRing) != SessionSizes().ring) return 2;
    return session.map.count(kArena) == SessionSizes().arena ? 0 : 3;
  });
  if (result < 0) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  EXPECT_EQ(result, 0);
}

// A process that makes a file larger than its limit gets SIGXFSZ, which ends it by default.
TEST(SessionFileTest, FileSizeLimitMakesTheSessionSmallerOrNone) {
  const auto ring_at_limit = [](rlim_t limit) {
    ScratchDirectory directory;
    const pid_t child = fork();
    if (child == 0) {
      const rlimit limits = {limit, limit};
      setrlimit(RLIMIT_FSIZE, &limits);
      CreatedSession session;
      const int error = CreateSession(SessionSizes(), "", &session);
      _exit(error != 0 ? error : static_cast<int>(session.map.count(kRing) * 64 >> 20));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  };
  EXPECT_EQ(ring_at_limit(40 << 20), 16);  // MiB
  EXPECT_EQ(ring_at_limit(20 << 20), 8);
  EXPECT_EQ(ring_at_limit(4096), EFBIG);
}

TEST(SessionFileTest, StartTicksIdentifyProcesses) {
  EXPECT_NE(StartTicks(static_cast<uint64_t>(getpid())), 0u);
  EXPECT_EQ(StartTicks(0), 0u);
  EXPECT_EQ(StartTicks(~uint64_t{0}), 0u);
}

TEST(SessionFileTest, ForkChildIsOneUntilItExecutesAProgram) {
  const auto child = [](auto run) {
    const pid_t pid = fork();
    if (pid == 0) _exit(run());
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(child([] { return IsForkChild() ? 1 : 0; }), 1);
  const char* const filter = "--gtest_filter=*ProcessThatWasExecutedIsNoForkChild";
  EXPECT_EQ(child([&] { return execl("/proc/self/exe", "session_test", filter, nullptr); }), 0);
}

TEST(SessionFileTest, ProcessThatWasExecutedIsNoForkChild) { EXPECT_FALSE(IsForkChild()); }

TEST(SessionFileTest, StartTicksAreThoseOfTheOtherTimeNamespace) {
  int answer[2];
  ASSERT_EQ(pipe(answer), 0);
  const pid_t outer = fork();
  if (outer == 0) {
    const int offsets =
        unshare(CLONE_NEWTIME) == 0 ? open("/proc/self/timens_offsets", O_WRONLY) : -1;
    if (offsets < 0 || write(offsets, "boottime 1000 0", 15) != 15) _exit(1);
    const pid_t inner = fork();
    if (inner == 0) {
      const uint64_t seen[] = {static_cast<uint64_t>(getpid()),
                               StartTicks(static_cast<uint64_t>(getpid()))};
      (void)!write(answer[1], seen, sizeof(seen));
      pause();
    }
    int status;
    waitpid(inner, &status, 0);
    _exit(0);
  }
  close(answer[1]);
  uint64_t seen[2] = {};
  const bool reported = read(answer[0], seen, sizeof(seen)) == sizeof(seen);
  close(answer[0]);
  const uint64_t from_here = reported ? StartTicks(seen[0]) : 0;
  if (reported) kill(static_cast<pid_t>(seen[0]), SIGKILL);
  waitpid(outer, nullptr, 0);
  if (!reported) GTEST_SKIP() << "no time namespace is permitted here";
  EXPECT_EQ(from_here, seen[1]);
}

}  // namespace
}  // namespace gmt::session
