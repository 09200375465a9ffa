#include "session/process_stat.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace gmt::session {
namespace {

TEST(ProcessStatTest, NameMayContainBlanksAndParentheses) {
  char before[16];
  prctl(PR_GET_NAME, before);
  prctl(PR_SET_NAME, "a) Z 1 (b) 2");
  const std::string thread = "/proc/self/task/" + std::to_string(gettid());
  const ProcessStat stat(thread.c_str());
  prctl(PR_SET_NAME, before);
  EXPECT_EQ(stat.state(), 'R');
  EXPECT_FALSE(stat.HasEnded());
  EXPECT_EQ(stat.Field(4), static_cast<uint64_t>(getppid()));
}

TEST(ProcessStatTest, ProcessThatNobodyWaitedForHasEnded) {
  const pid_t child = fork();
  if (child == 0) _exit(7);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const ProcessStat stat(("/proc/" + std::to_string(child)).c_str());
  waitpid(child, nullptr, 0);
  EXPECT_EQ(stat.state(), 'Z');
  EXPECT_TRUE(stat.HasEnded());
  EXPECT_EQ(stat.Field(52), 7u << 8);  // the status that waitpid() returns
}

TEST(ProcessStatTest, ProcessThatDoesNotExistHasEnded) {
  const ProcessStat stat("/proc/0");
  EXPECT_FALSE(stat.is_readable());
  EXPECT_TRUE(stat.HasEnded());
  EXPECT_EQ(stat.Field(22), 0u);
}

TEST(ProcessStatTest, FieldBeyondTheLastOneIsZero) {
  EXPECT_EQ(ProcessStat("/proc/self").Field(500), 0u);
}

}  // namespace
}  // namespace gmt::session
