#include "collector/sessions/target_files.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace gmt::collector {
namespace {

namespace fs = std::filesystem;

TEST(TargetFiles, ProcessWithOurRootHasOurPaths) {
  const TargetFiles files(static_cast<uint64_t>(getpid()));
  EXPECT_EQ(files.root(), "");
  EXPECT_EQ(files.process(), "/proc/" + std::to_string(getpid()));
}

TEST(TargetFiles, ProcessThatIsGoneHasOurPaths) {
  const TargetFiles files(0);
  EXPECT_EQ(files.root(), "");
  EXPECT_EQ(files.process(), "");
}

// A child with its own root. It reports on a pipe whether it could change its root.
TEST(TargetFiles, OtherRootCanBeReadAfterTheProcessIsGone) {
  const fs::path dir =
      fs::path(::testing::TempDir()) / ("target_files." + std::to_string(getpid()));
  fs::create_directories(dir);
  std::ofstream(dir / "inside") << "x";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool has_root =
        chroot(dir.c_str()) == 0 || (unshare(CLONE_NEWUSER) == 0 && chroot(dir.c_str()) == 0);
    const char answer = has_root && chdir("/") == 0 ? 'y' : 'n';
    if (write(ready[1], &answer, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char answer = 'n';
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  {
    const TargetFiles files(static_cast<uint64_t>(child));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    if (answer == 'y') {
      EXPECT_NE(files.root(), "");
      EXPECT_TRUE(fs::exists(files.root() + "/inside"));
      EXPECT_FALSE(fs::exists(fs::path(files.process()) / "root" / "inside"));
    }
  }
  close(ready[0]);
  close(ready[1]);
  fs::remove_all(dir);
  if (answer != 'y') GTEST_SKIP() << "this user may not change the root of a process";
}

}  // namespace
}  // namespace gmt::collector
