#include "collector/sessions/session_summary.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "collector/sessions/session_claim.h"
#include "collector/sessions/session_search.h"
#include "collector/sessions/session_sweep.h"
#include "collector/testing/fake_target.h"

namespace gmt::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kNow = 0;  // keeps nothing that may be removed

SessionSummary Look(const FakeTarget& target) { return *SummariseFile(target.path()); }

std::vector<std::string> Sweep(const FakeTarget& target, uint64_t keep_ns = kKeepUncollectedNs) {
  return RemoveDeadSessions(target.directory(), keep_ns);
}

void MarkCollected(FakeTarget& target) {
  target.control().finished.store(session::Handshake::kDone);
}

TEST(SessionSummaryTest, SessionOfALivingProcessWithoutACollectorIsUnattended) {
  FakeTarget target;
  target.Alloc(0x1000, 1);
  const SessionSummary s = Look(target);
  EXPECT_EQ(s.state, SessionState::kUnattended);
  EXPECT_EQ(s.pid, static_cast<uint64_t>(getpid()));
  EXPECT_EQ(s.run_id, "run-7");
  EXPECT_THAT(s.argv, ElementsAre("python", "train.py"));
  EXPECT_GT(s.bytes, 0u);
  EXPECT_LE(s.idle_ns, s.age_ns);
  EXPECT_EQ(s.collector_pid, 0u);
}

TEST(SessionSummaryTest, ClaimedSessionIsRecording) {
  FakeTarget target;
  const auto claim = SessionClaim::Take(target.fd());
  const SessionSummary s = Look(target);
  EXPECT_EQ(s.state, SessionState::kRecording);
  EXPECT_EQ(s.collector_pid, static_cast<uint64_t>(getpid()));
}

int looking_fd = -1;

// A signal to this thread releases the lock after 20 ms, between two attempts of Take(), however
// slow the machine is.
TEST(SessionSummaryTest, InspectingASessionDoesNotBlockACollector) {
  FakeTarget target;
  looking_fd = open(target.path().c_str(), O_RDONLY);
  ASSERT_EQ(flock(looking_fd, LOCK_SH), 0);
  const auto before = signal(SIGALRM, [](int) { close(looking_fd); });
  const itimerval soon = {{0, 0}, {0, 20000}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &soon, nullptr), 0);
  EXPECT_TRUE(SessionClaim::Take(target.fd()).ok());
  signal(SIGALRM, before);
}

TEST(SessionSummaryTest, ReusedPidIsAnEndedProcess) {
  FakeTarget target;
  target.BeGone();  // the pid is alive, but has another start time
  EXPECT_EQ(Look(target).state, SessionState::kOrphaned);
}

TEST(SessionSummaryTest, ProcessFromBeforeTheRestartIsNotAlive) {
  FakeTarget target;
  target.header().boot_id[3] ^= 1;
  EXPECT_EQ(Look(target).state, SessionState::kOtherBoot);
}

TEST(SessionSummaryTest, CollectedSessionIsNotAnOrphan) {
  FakeTarget target;
  target.BeGone();
  MarkCollected(target);
  EXPECT_EQ(Look(target).state, SessionState::kCollected);
}

TEST(SessionSummaryTest, ProcessOfAnotherPidNamespaceHasUnknownState) {
  FakeTarget target;
  target.header().pid_namespace += 1;
  target.BeGone();
  EXPECT_EQ(Look(target).state, SessionState::kElsewhere);
}

TEST(SessionSummaryTest, SessionOfAnotherReleaseHasItsVersionAndInfo) {
  FakeTarget target;
  target.header().abi_major += 1;
  target.header().sections[session::kRing].stride = 128;
  const SessionSummary s = Look(target);
  EXPECT_EQ(s.state, SessionState::kOtherRelease);
  EXPECT_EQ(s.abi_major, session::kAbiMajor + 1);
  EXPECT_EQ(s.run_id, "run-7");
}

TEST(SessionSummaryTest, TruncatedSessionIsDamaged) {
  FakeTarget target;
  const uint64_t size = std::filesystem::file_size(target.path());
  for (const uint64_t kept :
       {size - 1, size / 2, uint64_t{8192}, uint64_t{4097}, uint64_t{100}, uint64_t{0}}) {
    ASSERT_EQ(truncate(target.path().c_str(), static_cast<off_t>(kept)), 0);
    const SessionSummary s = Look(target);
    EXPECT_EQ(s.state, SessionState::kDamaged) << kept;
    EXPECT_NE(s.damage, "");
  }
}

TEST(SessionSummaryTest, FileThatCannotBeOpenedIsNamed) {
  EXPECT_EQ(SummariseFile("/nowhere.session").status().message(),
            "/nowhere.session: No such file or directory");
  EXPECT_FALSE(SummariseFile("/tmp").ok());
}

TEST(SessionSummaryTest, AgeDoesNotDependOnTheWallClock) {
  FakeTarget target;
  target.header().realtime_ns += 1000 * kSecond;  // as after the clock was set back
  EXPECT_LT(Look(target).age_ns, 1000 * kSecond);
  target.header().monotonic_ns -= 5 * kSecond;
  EXPECT_GE(Look(target).age_ns, 5 * kSecond);
}

TEST(SessionSummaryTest, FindsTheSessionsOfItsDirectory) {
  FakeTarget target;
  const auto sessions = FindSessions();
  const auto own = std::count_if(sessions.begin(), sessions.end(),
                                 [&](const auto& s) { return s.path == target.path(); });
  EXPECT_EQ(own, 1);
}

// ---- Sweep --------------------------------------------------------------------------------------

TEST(SessionSweepTest, SessionOfALiveProcessStays) {
  FakeTarget target;
  MarkCollected(target);
  EXPECT_THAT(Sweep(target, kNow), IsEmpty());
}

TEST(SessionSweepTest, SocketsOfDeadCollectorsAreRemoved) {
  FakeTarget target;
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  const std::string prefix = target.directory() + "/collector-";
  const std::string dead = prefix + std::to_string(gone) + ".sock";
  const std::string live = prefix + std::to_string(getpid()) + ".sock";
  for (const std::string& path : {dead, live}) std::ofstream(path) << "";
  EXPECT_THAT(Sweep(target, kNow), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(live));
  std::filesystem::remove(live);
}

TEST(SessionSweepTest, LockedSessionStays) {
  FakeTarget target;
  target.BeGone();
  MarkCollected(target);
  const auto claim = SessionClaim::Take(target.fd());
  EXPECT_THAT(Sweep(target, kNow), IsEmpty());
}

TEST(SessionSweepTest, CollectedSessionIsRemovedImmediately) {
  FakeTarget target;
  target.BeGone();
  MarkCollected(target);
  EXPECT_THAT(Sweep(target), ElementsAre(target.path()));
  EXPECT_FALSE(std::filesystem::exists(target.path()));
}

TEST(SessionSweepTest, OrphanIsKeptForTheGivenTimeAfterItsLastEvent) {
  FakeTarget target;
  target.BeGone();
  EXPECT_THAT(Sweep(target), IsEmpty());
  const uint64_t made_ns = target.header().monotonic_ns;
  target.header().monotonic_ns -= 6 * kSecond;
  target.now_ns = made_ns;
  target.Alloc(0x1000, 1);  // started long ago, but active a moment ago
  EXPECT_THAT(Sweep(target, 5 * kSecond), IsEmpty());
}

TEST(SessionSweepTest, UncollectedOrphanIsRemovedEventually) {
  FakeTarget target;
  target.BeGone();
  target.header().monotonic_ns -= 6 * kSecond;
  EXPECT_THAT(Sweep(target), IsEmpty());
  EXPECT_THAT(Sweep(target, 5 * kSecond), ElementsAre(target.path()));
}

TEST(SessionSweepTest, SessionOfAnotherPidNamespaceStays) {
  FakeTarget elsewhere;
  elsewhere.header().pid_namespace += 1;
  elsewhere.BeGone();
  EXPECT_THAT(Sweep(elsewhere, kNow), IsEmpty());
}

TEST(SessionSweepTest, SessionOfAnotherReleaseIsRemovedAfterItsProcessEnds) {
  for (const uint32_t release : {session::kAbiMajor - 1, session::kAbiMajor + 1}) {
    FakeTarget other;
    other.header().abi_major = release;
    other.header().sections[session::kRing] = {uint64_t{1} << 40, 128, 3};
    EXPECT_THAT(Sweep(other, kNow), IsEmpty()) << "its process is this test";
    other.BeGone();
    EXPECT_THAT(Sweep(other), IsEmpty()) << "a day has not passed";
    {
      const int reader = open(other.path().c_str(), O_RDONLY);
      ASSERT_EQ(flock(reader, LOCK_EX | LOCK_NB), 0);
      EXPECT_THAT(Sweep(other, kNow), IsEmpty()) << "a collector of its release reads it";
      close(reader);
    }
    EXPECT_THAT(Sweep(other, kNow), ElementsAre(other.path()));
  }
}

TEST(SessionSweepTest, DamagedSessionIsRecognisedByItsName) {
  FakeTarget target;
  ASSERT_EQ(truncate(target.path().c_str(), 100), 0);
  EXPECT_THAT(Sweep(target, kNow), IsEmpty());  // its process is this test
  const std::string gone = target.directory() + "/999999999-1-1.session";
  std::filesystem::rename(target.path(), gone);
  EXPECT_THAT(Sweep(target), IsEmpty());  // a day has not passed
  EXPECT_THAT(Sweep(target, kNow), ElementsAre(gone));
}

TEST(SessionSweepTest, UnfinishedSessionOfADeadProcessIsRemoved) {
  FakeTarget target;
  const std::string hidden = target.directory() + "/.999999999-77";
  std::ofstream(hidden) << "half";
  EXPECT_THAT(Sweep(target, kNow), ElementsAre(hidden));
}

TEST(SessionSweepTest, OtherFilesLinksAndFoldersAreLeftAlone) {
  FakeTarget target;
  const std::string folder = target.directory();
  std::ofstream(folder + "/abc.run") << "1\t\t\n";
  std::filesystem::create_directory(folder + "/999999999-1-2.session");
  const std::string outside = folder + "/outside";
  std::ofstream(outside) << "precious";
  std::filesystem::create_symlink(outside, folder + "/999999999-1-3.session");
  EXPECT_THAT(Sweep(target, kNow), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(outside));
}

TEST(SessionSweepTest, ConcurrentSweepsRemoveItOnce) {
  constexpr int kSweepers = 8;
  FakeTarget target;
  target.BeGone();
  MarkCollected(target);
  std::vector<pid_t> children;
  for (int i = 0; i < kSweepers; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(static_cast<int>(Sweep(target).size()));
    children.push_back(child);
  }
  int removed = 0;
  for (const pid_t child : children) {
    int status;
    waitpid(child, &status, 0);
    removed += WEXITSTATUS(status);
  }
  EXPECT_LE(removed, 1);  // concurrent sweeps may each leave it to the other
  Sweep(target);
  EXPECT_FALSE(std::filesystem::exists(target.path()));
}

TEST(SessionSummaryTest, OnlyARegularFileIsOpened) {
  const std::string folder = testing::TempDir();
  const std::string pipe = folder + "/pipe.session", link = folder + "/link.session";
  unlink(pipe.c_str());
  unlink(link.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(symlink("/dev/null", link.c_str()), 0);
  for (const std::string& path : {pipe, link, folder}) {
    EXPECT_EQ(OpenSessionFile(path), -1) << path;
    EXPECT_EQ(errno, EINVAL) << path;
  }
  EXPECT_EQ(OpenSessionFile(folder + "/nothing.session"), -1);
  EXPECT_EQ(errno, ENOENT);
  unlink(pipe.c_str());
  unlink(link.c_str());
}

}  // namespace
}  // namespace gmt::collector
