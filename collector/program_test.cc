// The collector program as the preloaded library starts it: with descriptors 3 to 5, another
// process as target, and real time.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "collector/arguments.h"
#include "collector/sessions/session_claim.h"
#include "collector/sessions/session_search.h"
#include "collector/sessions/session_summary.h"
#include "collector/testing/fake_target.h"

namespace gmt::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// A traced process in a child of this test, and its collector.
class ProgramTest : public ::testing::Test {
 protected:
  // Runs `life` in a child that owns the session; the session has the child's pid.
  void StartTarget(const std::function<void(FakeTarget&)>& life) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    target_pid_ = fork();
    if (target_pid_ == 0) {
      FakeTarget target;
      const std::string path = target.path() + '\n';
      if (write(ready[1], path.data(), path.size()) < 0) _exit(1);
      life(target);
      _exit(5);
    }
    char path[256] = {};
    const ssize_t n = read(ready[0], path, sizeof(path) - 1);
    ASSERT_GT(n, 0);
    session_path_.assign(path, static_cast<size_t>(n - 1));
    output_path_ = session_path_ + ".gmt";
    setenv("GPUMEMTRACE_DIR", session_path_.substr(0, session_path_.rfind('/')).c_str(),
           1);  // as for the preloaded library
    close(ready[0]);
    close(ready[1]);
  }

  void StartCollector() {
    const int session = open(session_path_.c_str(), O_RDWR),
              output = open(output_path_.c_str(), O_WRONLY | O_CREAT, 0600);
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, target_pid_, 0));
    collector_pid_ = fork();
    if (collector_pid_ == 0) {
      // Moved above the target range first, so that none is overwritten before it is copied.
      const int high[] = {fcntl(session, F_DUPFD, 100), fcntl(pidfd, F_DUPFD, 100),
                          fcntl(output, F_DUPFD, 100)};
      dup2(high[0], session::kSessionFd);
      dup2(high[1], session::kTargetPidFd);
      dup2(high[2], session::kOutputFd);
      execl(GMT_COLLECTOR_PROGRAM, GMT_COLLECTOR_PROGRAM, nullptr);
      _exit(127);
    }
    close(session);
    close(pidfd);
    close(output);
  }

  int Wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Waits until the collector has claimed the session.
  void AwaitClaim() {
    const int fd = open(session_path_.c_str(), O_RDONLY);
    while (!IsClaimed(fd)) usleep(1000);
    close(fd);
  }
  // Waits until the first chunk is in the file.
  void AwaitRecording() {
    while (ReadBack(FileBytes(output_path_)).Count(gmt::ALLOC) == 0) usleep(20000);
  }
  bool SessionExists() { return access(session_path_.c_str(), F_OK) == 0; }

  void TearDown() override {
    const std::string directory = session_path_.substr(0, session_path_.rfind('/'));
    if (directory.rfind("/tmp/gmt-collector-", 0) == 0) std::filesystem::remove_all(directory);
  }

  pid_t target_pid_ = 0, collector_pid_ = 0;
  std::string session_path_, output_path_;
};

[[noreturn]] void WaitToBeKilled() {
  while (true) pause();
}

TEST_F(ProgramTest, KilledTargetLeavesACompleteRecordingWithItsEnd) {
  StartTarget([](FakeTarget& target) {
    for (uint64_t i = 1; i <= 10; ++i) target.Alloc(i * 4096, i);
    target.Free(4096);
    WaitToBeKilled();
  });
  StartCollector();
  AwaitClaim();
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
  EXPECT_EQ(Wait(collector_pid_), 0);
  const Recording recording = ReadBack(FileBytes(output_path_));
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()).size(), 9u);
  EXPECT_FALSE(SessionExists());
  if (recording.facts.exit().kind() == gmt::Exit::LOST)
    GTEST_SKIP() << "this kernel keeps no exit records for pidfds";
  EXPECT_EQ(recording.facts.exit().kind(), gmt::Exit::SIGNALLED);
  EXPECT_EQ(recording.facts.exit().code(), SIGKILL);
}

TEST_F(ProgramTest, NormalExitIsAnsweredWhileTheTargetWaits) {
  StartTarget([](FakeTarget& target) {
    target.Alloc(4096, 7);
    target.Exit(5);
    while (target.control().finished.load() == session::Handshake::kNone) usleep(1000);
    _exit(target.control().finished.load() == session::Handshake::kDone ? 5 : 1);
  });
  StartCollector();
  EXPECT_EQ(Wait(target_pid_), 5);
  EXPECT_EQ(Wait(collector_pid_), 0);
  const Recording recording = ReadBack(FileBytes(output_path_));
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.facts.exit().code(), 5);
}

TEST_F(ProgramTest, GrowingFileCanBeRead) {
  StartTarget([](FakeTarget& target) {
    target.Alloc(4096, 7);
    WaitToBeKilled();
  });
  StartCollector();
  AwaitRecording();
  EXPECT_EQ(ReadBack(FileBytes(output_path_)).Count(gmt::ALLOC), 1u);
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
  Wait(collector_pid_);
}

TEST_F(ProgramTest, SecondCollectorLeavesTheSessionToTheFirst) {
  StartTarget([](FakeTarget&) { WaitToBeKilled(); });
  const int fd = open(session_path_.c_str(), O_RDWR);
  auto first = SessionClaim::Take(fd);
  ASSERT_TRUE(first.ok()) << first.status();
  StartCollector();
  EXPECT_EQ(Wait(collector_pid_), 1);
  EXPECT_TRUE(SessionExists());
  EXPECT_EQ((*first)->session().control().collector_pid.load(), static_cast<uint32_t>(getpid()));
  EXPECT_FALSE(SessionClaim::Take(fd).ok());
  first->reset();
  EXPECT_TRUE(SessionClaim::Take(fd).ok());
  close(fd);
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
}

TEST_F(ProgramTest, KilledCollectorsSessionCanBeCollectedAfterTheTargetsEnd) {
  StartTarget([](FakeTarget& target) {
    for (uint64_t i = 1; i <= 10; ++i) target.Alloc(i * 4096, i);
    WaitToBeKilled();
  });
  StartCollector();
  AwaitClaim();
  kill(collector_pid_, SIGKILL);
  Wait(collector_pid_);
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
  EXPECT_TRUE(SessionExists());
  unsetenv("GPUMEMTRACE_DIR");  // as started by a user, from any directory
  const std::string collected = output_path_ + ".collected";
  const pid_t second = fork();
  if (second == 0) {
    execl(GMT_COLLECTOR_PROGRAM, GMT_COLLECTOR_PROGRAM, "--session", session_path_.c_str(),
          "--output", collected.c_str(), nullptr);
    _exit(127);
  }
  EXPECT_EQ(Wait(second), 0);
  const Recording recording = ReadBack(FileBytes(collected));
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()).size(), 10u);
  EXPECT_EQ(recording.facts.exit().kind(), gmt::Exit::LOST);
  EXPECT_FALSE(SessionExists());
}

TEST_F(ProgramTest, TerminatedCollectorFinishesTheFileAndKeepsTheSession) {
  StartTarget([](FakeTarget& target) {
    target.Alloc(4096, 7);
    WaitToBeKilled();
  });
  StartCollector();
  AwaitRecording();
  kill(collector_pid_, SIGTERM);
  EXPECT_EQ(Wait(collector_pid_), 0);
  const Recording recording = ReadBack(FileBytes(output_path_));
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.facts.exit().kind(), gmt::Exit::RUNNING);
  EXPECT_TRUE(SessionExists());
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
}

TEST_F(ProgramTest, DeletedRecordingIsStartedAgainUnderItsName) {
  StartTarget([](FakeTarget& target) {
    for (uint64_t i = 1; i <= 10; ++i) target.Alloc(i * 4096, i);
    WaitToBeKilled();
  });
  const std::string log = output_path_ + ".run";
  std::ofstream(log).close();
  setenv("GPUMEMTRACE_RUN_LOG", log.c_str(), 1);
  StartCollector();
  unsetenv("GPUMEMTRACE_RUN_LOG");
  AwaitRecording();
  std::filesystem::remove(output_path_);
  while (!std::filesystem::exists(output_path_)) usleep(20000);
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
  EXPECT_EQ(Wait(collector_pid_), 0);
  const Recording recording = ReadBack(FileBytes(output_path_));
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.Count(gmt::ALLOC), 10u);  // the ring held all of them
  EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()).size(), 10u);
  EXPECT_EQ(FileBytes(log),
            std::to_string(target_pid_) + "\t" + session_path_ + "\t" + output_path_ + "\n");
  EXPECT_FALSE(SessionExists());
}

TEST_F(ProgramTest, SessionsOfKilledProcessesAreRemovedByTheNextCollector) {
  StartTarget([](FakeTarget&) { WaitToBeKilled(); });
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
  {
    const int fd = open(session_path_.c_str(), O_RDWR);
    auto claim = SessionClaim::Take(fd);
    ASSERT_TRUE(claim.ok()) << claim.status();
    (*claim)->session().control().finished.store(session::Handshake::kDone);
    close(fd);
  }
  const std::string dead = session_path_, directory = dead.substr(0, dead.rfind('/'));
  StartTarget([](FakeTarget&) { WaitToBeKilled(); });
  // Moved to the second session's directory, which its collector sweeps.
  const std::string here = session_path_.substr(0, session_path_.rfind('/'));
  const std::string moved = here + dead.substr(dead.rfind('/'));
  std::filesystem::rename(dead, moved);
  std::filesystem::remove_all(directory);
  StartCollector();
  while (std::filesystem::exists(moved)) usleep(10000);
  EXPECT_TRUE(SessionExists());
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
  EXPECT_EQ(Wait(collector_pid_), 0);
}

TEST_F(ProgramTest, SessionWithoutANameIsFoundThroughItsCollector) {
  StartTarget([](FakeTarget&) { WaitToBeKilled(); });
  const int unnamed = memfd_create("gpumemtrace", 0);
  const std::string bytes = FileBytes(session_path_);
  ASSERT_EQ(write(unnamed, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  const std::string named =
      std::exchange(session_path_, "/proc/self/fd/" + std::to_string(unnamed));
  output_path_ = named + ".gmt";
  StartCollector();
  session_path_ = named;
  const std::string path = "/proc/" + std::to_string(collector_pid_) + "/fd/3";
  const auto is_found = [&] {
    for (const SessionSummary& session : FindSessions()) {
      if (session.path == path && session.state == SessionState::kRecording) return true;
    }
    return false;
  };
  while (!is_found()) usleep(10000);
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
  EXPECT_EQ(Wait(collector_pid_), 0);
  close(unnamed);
}

TEST_F(ProgramTest, StaleSocketListsNoSessionTwice) {
  StartTarget([](FakeTarget&) { WaitToBeKilled(); });
  StartCollector();
  const std::string left = session_path_.substr(0, session_path_.rfind('/')) + "/collector-" +
                           std::to_string(collector_pid_) + ".sock";
  std::ofstream(left) << "";
  ptrdiff_t listed = 0;
  for (; listed == 0; usleep(10000)) {
    const auto sessions = FindSessions();
    listed = std::count_if(sessions.begin(), sessions.end(), [&](const SessionSummary& session) {
      return session.state == SessionState::kRecording &&
             session.pid == static_cast<uint64_t>(target_pid_);
    });
  }
  EXPECT_EQ(listed, 1);
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
  EXPECT_EQ(Wait(collector_pid_), 0);
}

TEST_F(ProgramTest, TruncatedSessionEndsTheRecordingCleanly) {
  StartTarget([](FakeTarget& target) {
    for (uint64_t i = 1; i <= 10; ++i) target.Alloc(i * 4096, i);
    WaitToBeKilled();
  });
  StartCollector();
  AwaitRecording();
  ASSERT_EQ(truncate(session_path_.c_str(), 4096), 0);
  EXPECT_EQ(Wait(collector_pid_), 0);
  const Recording recording = ReadBack(FileBytes(output_path_));
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.Count(gmt::ALLOC), 10u);
  EXPECT_FALSE(recording.snapshots.back().exact());
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
}

TEST_F(ProgramTest, SessionOfAnotherReleaseIsRefused) {
  int changed[2];
  ASSERT_EQ(pipe(changed), 0);
  StartTarget([&](FakeTarget& target) {
    const_cast<session::Header&>(target.map().header()).abi_major += 1;
    if (write(changed[1], "", 1) != 1) return;
    WaitToBeKilled();
  });
  char byte;
  ASSERT_EQ(read(changed[0], &byte, 1), 1);
  close(changed[0]);
  close(changed[1]);
  const int fd = open(session_path_.c_str(), O_RDWR);
  const auto claim = SessionClaim::Take(fd);
  EXPECT_EQ(std::string(claim.status().message()),
            "the session cannot be read: it was made by an incompatible release");
  close(fd);
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
}

// As started by attach: the session that was checked is recorded, even if its path leads elsewhere
// now.
TEST_F(ProgramTest, SessionPassedAsDescriptorIsRecorded) {
  StartTarget([](FakeTarget& target) {
    for (uint64_t i = 1; i <= 10; ++i) target.Alloc(i * 4096, i);
    WaitToBeKilled();
  });
  const int session = open(session_path_.c_str(), O_RDWR);
  collector_pid_ = fork();
  if (collector_pid_ == 0) {
    const std::string fd = std::to_string(session);
    execl(GMT_COLLECTOR_PROGRAM, GMT_COLLECTOR_PROGRAM, "--session", "/nowhere.session",
          "--session-fd", fd.c_str(), "--output", output_path_.c_str(), nullptr);
    _exit(127);
  }
  while (!IsClaimed(session)) usleep(1000);
  kill(target_pid_, SIGKILL);
  Wait(target_pid_);
  EXPECT_EQ(Wait(collector_pid_), 0);
  const Recording recording = ReadBack(FileBytes(output_path_));
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()).size(), 10u);
  // Our descriptor of the session does not hold the lock of a collector that is gone.
  EXPECT_FALSE(IsClaimed(open(("/proc/self/fd/" + std::to_string(session)).c_str(), O_RDWR)));
  close(session);
}

TEST(ArgumentsTest, SessionAndOutputBelongTogether) {
  const char* none[] = {"c"};
  const char* both[] = {"c", "--session", "s", "--output", "o"};
  const char* half[] = {"c", "--session", "s"};
  const char* odd[] = {"c", "--session"};
  const char* unknown[] = {"c", "--verbose", "1"};
  EXPECT_EQ(ParseArguments(1, none)->session, "");
  EXPECT_EQ(ParseArguments(5, both)->output, "o");
  EXPECT_FALSE(ParseArguments(3, half).ok());
  EXPECT_FALSE(ParseArguments(2, odd).ok());
  EXPECT_FALSE(ParseArguments(3, unknown).ok());
}

}  // namespace
}  // namespace gmt::collector
