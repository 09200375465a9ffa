#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace sim {
namespace {

using StatFunction = int (*)(const char*, struct stat*);

StatFunction SimulatedStat(const char* name) {
  static void* library = dlopen(SIMCUDA_LIBRARIES "/libsimcuda-device-files.so", RTLD_NOW);
  return reinterpret_cast<StatFunction>(dlsym(library, name));
}

TEST(DeviceFilesTest, FindsTheFilesOfTheDevice) {
  for (const char* function : {"stat", "stat64"}) {
    for (const char* path : {"/dev/nvidia0", "/dev/nvidiactl"}) {
      struct stat status = {};
      ASSERT_EQ(SimulatedStat(function)(path, &status), 0) << path;
      EXPECT_TRUE(S_ISCHR(status.st_mode)) << path;
    }
  }
}

TEST(DeviceFilesTest, LeavesOtherFilesAlone) {
  struct stat simulated = {}, real = {};
  ASSERT_EQ(SimulatedStat("stat")("/dev/null", &simulated), 0);
  ASSERT_EQ(stat("/dev/null", &real), 0);
  EXPECT_EQ(simulated.st_rdev, real.st_rdev);
  EXPECT_EQ(simulated.st_ino, real.st_ino);
  EXPECT_EQ(SimulatedStat("stat")("/dev/nvidia-nothing", &simulated), -1);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace sim
