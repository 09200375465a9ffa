#include "tests/simcuda/shared_budget.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <nvml.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

class SharedBudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "simcuda_shared_" + std::to_string(getpid());
    std::remove(path_.c_str());
  }
  void TearDown() override { std::remove(path_.c_str()); }

  // Starts a process that runs `body`, reports that and lives until it is killed.
  template <typename Body>
  pid_t Hold(Body body) {
    int pipe_ends[2];
    EXPECT_EQ(pipe(pipe_ends), 0);
    std::fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
      body();
      char said = 1;
      if (write(pipe_ends[1], &said, 1) != 1) _exit(1);
      while (true) pause();
    }
    char said = 0;
    EXPECT_EQ(read(pipe_ends[0], &said, 1), 1);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return child;
  }
  // Returns when it is dead, even if this process is not its parent.
  static void Kill(pid_t process) {
    int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    ASSERT_GE(descriptor, 0);
    kill(process, SIGKILL);
    pollfd dead = {descriptor, POLLIN, 0};
    EXPECT_EQ(poll(&dead, 1, -1), 1);
    close(descriptor);
    waitpid(process, nullptr, 0);
  }

  std::string path_;
};

TEST_F(SharedBudgetTest, MemoryOfAnotherProcessIsTakenUntilItIsKilled) {
  pid_t other = Hold([&] { (new SharedBudget(path_))->Take(0, 60, 100); });
  SharedBudget budget(path_);
  EXPECT_EQ(budget.HeldByOthers(0), 60u);
  EXPECT_EQ(budget.HeldByOthers(1), 0u);
  ASSERT_EQ(budget.Others(0).size(), 1u);
  EXPECT_EQ(budget.Others(0)[0].pid, other);
  EXPECT_FALSE(budget.Take(0, 41, 100));
  EXPECT_TRUE(budget.Take(0, 40, 100));
  EXPECT_TRUE(budget.Take(1, 100, 100));
  Kill(other);
  EXPECT_EQ(budget.HeldByOthers(0), 0u);
  EXPECT_TRUE(budget.Take(0, 60, 100));
}

TEST_F(SharedBudgetTest, RowOfADeadProcessIsReused) {
  for (int i = 0; i < 3; ++i) {
    Kill(Hold([&] { (new SharedBudget(path_))->Take(0, 50, 100); }));
  }
  SharedBudget budget(path_);
  EXPECT_TRUE(budget.Take(0, 100, 100));
}

TEST_F(SharedBudgetTest, ProcessesNeverHoldMoreThanTheTotal) {
  constexpr uint64_t kLimit = 10;
  std::vector<pid_t> children;
  std::fflush(nullptr);
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    SharedBudget budget(path_);
    std::minstd_rand random(i + 1);
    uint64_t held = 0;
    bool right = true;
    for (int step = 0; step < 3000; ++step) {
      uint64_t bytes = random() % 4;
      if (random() % 2 == 0) {
        if (budget.Take(0, bytes, kLimit)) held += bytes;
      } else if (bytes <= held) {
        budget.Return(0, bytes);
        held -= bytes;
      }
      right = right && held <= kLimit;
    }
    // What the others hold at one moment fits beside nothing of this one's.
    budget.Return(0, held);
    right = right && budget.HeldByOthers(0) <= kLimit;
    _exit(right ? 0 : 1);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(SharedBudgetTest, ProcessCountsOnlyItselfIfTheFileCannotBeOpened) {
  SharedBudget budget("/none/shared");
  EXPECT_TRUE(budget.Take(0, 60, 100));
  EXPECT_FALSE(budget.Take(0, 60, 100));
  budget.Return(0, 60);
  EXPECT_TRUE(budget.Take(0, 100, 100));
}

// Returns the processes that, according to NVML, hold memory of device 0.
unsigned int ProcessesInNvml() {
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  auto get_device = reinterpret_cast<decltype(&nvmlDeviceGetHandleByIndex_v2)>(
      dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"));
  auto get_processes = reinterpret_cast<decltype(&nvmlDeviceGetComputeRunningProcesses_v3)>(
      dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3"));
  nvmlDevice_t device = nullptr;
  nvmlProcessInfo_t processes[8];
  unsigned int count = 8;
  EXPECT_EQ(get_device(0, &device), NVML_SUCCESS);
  EXPECT_EQ(get_processes(device, &count, processes), NVML_SUCCESS);
  EXPECT_EQ(processes[0].pid, static_cast<unsigned int>(getpid()));
  return count;
}

TEST_F(SharedBudgetTest, DriverReportsAndRefusesAsIfTheDeviceWereShared) {
  std::map<std::string, std::string> settings = {{"SIMCUDA_SHARED", path_},
                                                 {"SIMCUDA_MEMORY", "64M"}};
  pid_t other = Hold([&] {
    for (auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
    CUcontext context = nullptr;
    CUdeviceptr address = 0;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    if (cuMemAlloc(&address, 40 * kMiB) != CUDA_SUCCESS) _exit(1);
  });
  OnDevice(settings, [&] {
    CUdeviceptr address = 0;
    EXPECT_EQ(FreeMemory(), 24 * kMiB);
    EXPECT_EQ(cuMemAlloc(&address, 30 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAlloc(&address, 20 * kMiB), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 4 * kMiB);
    EXPECT_EQ(ProcessesInNvml(), 2u);
    Kill(other);
    EXPECT_EQ(FreeMemory(), 44 * kMiB);
    EXPECT_EQ(ProcessesInNvml(), 1u);
  });
  waitpid(other, nullptr, 0);
}

}  // namespace
}  // namespace sim
