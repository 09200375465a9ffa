#include "collector/sessions/target.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/testing/fake_target.h"
#include "session/session_file.h"

namespace gmt::collector {
namespace {

// A child that waits to be killed, with a session header that names it.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
    header_.pid = static_cast<uint64_t>(pid_);
    header_.start_ticks = session::StartTicks(header_.pid);
    session::ReadBootId(header_.boot_id);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  void Kill() { kill(pid_, SIGKILL); }
  void Reap() { waitpid(pid_, nullptr, 0); }
  void BecomeZombie() {
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  session::Header& header() { return header_; }
  int PidFd() const { return static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)); }

 private:
  pid_t pid_;
  session::Header header_ = {};
};

TEST(TargetTest, IsAliveUntilItDies) {
  Child child;
  Target target(child.header(), child.PidFd());
  EXPECT_TRUE(target.IsAlive());
  child.Kill();
  child.BecomeZombie();
  EXPECT_FALSE(target.IsAlive());
}

TEST(TargetTest, WithoutAnInheritedPidfdItIsFoundByPidAndStartTime) {
  Child child;
  Target target(child.header(), -1);
  EXPECT_TRUE(target.IsAlive());
  EXPECT_GE(target.pidfd(), 0);
}

TEST(TargetTest, DescriptorThatIsNoPidfdIsIgnored) {
  Child child;
  const int file = open("/proc/self/stat", O_RDONLY);
  Target target(child.header(), file);
  EXPECT_TRUE(target.IsAlive());
  EXPECT_NE(target.pidfd(), file);
  close(file);
}

TEST(TargetTest, LaterProcessWithTheSamePidIsNotAlive) {
  Child child;
  child.header().start_ticks += 1;
  EXPECT_FALSE(Target(child.header(), -1).IsAlive());
}

TEST(TargetTest, ProcessOfAnotherBootIsNotAlive) {
  Child child;
  child.header().boot_id[0] ^= 1;
  EXPECT_FALSE(Target(child.header(), -1).IsAlive());
}

TEST(TargetTest, ZombieHasItsSignal) {
  Child child;
  Target target(child.header(), child.PidFd());
  child.Kill();
  child.BecomeZombie();
  const auto exit = target.FindExitStatus();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->kind(), gmt::Exit::SIGNALLED);
  EXPECT_EQ(exit->code(), SIGKILL);
}

TEST(TargetTest, ReapedProcessHasItsSignalInThePidfd) {
  Child child;
  Target target(child.header(), child.PidFd());
  child.Kill();
  child.Reap();
  const auto exit = target.FindExitStatus();
  if (!exit.has_value())
    GTEST_SKIP() << "this kernel keeps no exit records for pidfds (Linux 6.15)";
  EXPECT_EQ(exit->kind(), gmt::Exit::SIGNALLED);
  EXPECT_EQ(exit->code(), SIGKILL);
  EXPECT_EQ(exit->known_by(), "pidfd");
}

TEST(TargetTest, LiveProcessHasNotEnded) {
  Child child;
  Target target(child.header(), child.PidFd());
  EXPECT_FALSE(target.FindExitStatus().has_value());
}

TEST(TargetTest, ThreadsHaveNamesWhileTheyLive) {
  Child child;
  Target target(child.header(), -1);
  EXPECT_NE(target.ThreadName(static_cast<uint32_t>(child.header().pid)), "");
  EXPECT_EQ(target.ThreadName(1u << 30), "");
}

// Like a container's process, which has pid 1 inside.
TEST(TargetTest, ProcessOfAnotherPidNamespaceHasThePidOfItsPidfd) {
  Child child;
  const uint64_t here = child.header().pid;
  child.header().pid = 1;
  child.header().pid_namespace = 77;
  Target target(child.header(), child.PidFd());
  EXPECT_EQ(target.pid(), here);
  EXPECT_TRUE(target.IsAlive());
  // Found by the kernel's list of a thread's tids; the child has only one.
  EXPECT_NE(target.ThreadName(static_cast<uint32_t>(here)), "");
  EXPECT_EQ(target.ThreadName(1), "");
}

TEST(TargetTest, ProcessOfAnotherPidNamespaceWithoutAPidfdHasNoPid) {
  Child child;
  child.header().pid_namespace = 77;
  EXPECT_EQ(Target(child.header(), -1).pid(), 0u);
}

TEST(PidOfPidfdTest, IsZeroIfEndedOrInvisible) {
  EXPECT_EQ(PidOfPidfd("pos:\t0\nPid:\t4711\nNSpid:\t4711\t1\n"), 4711u);
  EXPECT_EQ(PidOfPidfd("Pid:\t-1\nNSpid:\t-1\n"), 0u);
  EXPECT_EQ(PidOfPidfd("Pid:\t0\n"), 0u);
  EXPECT_EQ(PidOfPidfd("pos:\t0\nflags:\t02\n"), 0u);
}

TEST(FindExitTest, SessionHasPriority) {
  Child child;
  Target target(child.header(), child.PidFd());
  child.Kill();
  child.Reap();
  session::Control control = {};
  control.exit_code.store(7);
  control.exit_known_by_parent.store(1);
  control.exit_kind.store(session::ExitKind::kExited);
  FakeClock clock;
  const gmt::Exit exit = FindExit(target, control, &clock);
  EXPECT_EQ(exit.kind(), gmt::Exit::EXITED);
  EXPECT_EQ(exit.code(), 7);
  EXPECT_EQ(exit.known_by(), "run");
}

TEST(FindExitTest, ParentThatReapsLateIsWaitedFor) {
  Child child;
  session::Header unknown = child.header();
  unknown.start_ticks += 1;  // so that the kernel cannot be asked
  Target target(unknown, -1);
  session::Control control = {};
  FakeClock clock;
  clock.while_waiting = [&] {
    control.exit_code.store(SIGSEGV);
    control.exit_kind.store(session::ExitKind::kSignalled);
  };
  EXPECT_EQ(FindExit(target, control, &clock).code(), SIGSEGV);
}

TEST(FindExitTest, UnobservedEndIsLostAfterHalfASecond) {
  Child child;
  session::Header unknown = child.header();
  unknown.start_ticks += 1;
  Target target(unknown, -1);
  session::Control control = {};
  FakeClock clock;
  EXPECT_EQ(FindExit(target, control, &clock).kind(), gmt::Exit::LOST);
  EXPECT_LT(clock.now_ns, kSecond);
}

TEST(ExitFromWaitStatusTest, DistinguishesExitsFromSignals) {
  EXPECT_EQ(ExitFromWaitStatus(3 << 8, "pidfd").code(), 3);
  EXPECT_EQ(ExitFromWaitStatus(3 << 8, "pidfd").kind(), gmt::Exit::EXITED);
  EXPECT_EQ(ExitFromWaitStatus(11 | 0x80, "pidfd").kind(),
            gmt::Exit::SIGNALLED);  // with a core dump
  EXPECT_EQ(ExitFromWaitStatus(11 | 0x80, "pidfd").code(), 11);
}

}  // namespace
}  // namespace gmt::collector
