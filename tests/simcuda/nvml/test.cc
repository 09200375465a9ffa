// NVML of the simulated machine, queried by a process that does not use CUDA, like the collector.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <nvml.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/simcuda/device_identity.h"
#include "tests/simcuda/nvml/script.h"
#include "tests/simcuda/on_device.h"
#include "tests/simcuda/shared_budget.h"

namespace sim {
namespace {

#define NVML(name) reinterpret_cast<decltype(&name)>(dlsym(Library(), #name))

void* Library() {
  static void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  return library;
}

class NvmlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char directory[] = "/tmp/nvml_test.XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    directory_ = directory;
  }
  void TearDown() override {
    unlink(Path("script").c_str());
    unlink(Path("shared").c_str());
    rmdir(directory_.c_str());
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  // Runs `body` in a child process with the given NVML script.
  void WithScript(const std::string& script, const std::function<void()>& body) {
    std::ofstream(Path("script")) << script;
    InFreshProcess({{"SIMCUDA_NVML", Path("script")}, {"SIMCUDA_DEVICES", "2"}}, body);
  }

  std::string directory_;
};

nvmlDevice_t Device(unsigned int index) {
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(index, &device), NVML_SUCCESS);
  return device;
}

nvmlMemory_v2_t MemoryOf(nvmlDevice_t device) {
  nvmlMemory_v2_t memory = {};
  memory.version = nvmlMemory_v2;
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2)(device, &memory), NVML_SUCCESS);
  return memory;
}

std::vector<nvmlProcessInfo_t> ProcessesOf(nvmlDevice_t device) {
  std::vector<nvmlProcessInfo_t> list(16);
  unsigned int count = 16;
  EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, list.data()),
            NVML_SUCCESS);
  list.resize(count);
  return list;
}

TEST_F(NvmlTest, AllDevicesOfTheMachineAreListedWhateverCudaSees) {
  InFreshProcess({{"SIMCUDA_DEVICES", "3"}, {"CUDA_VISIBLE_DEVICES", "2"}}, [] {
    unsigned int count = 0, index = 9;
    EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
    EXPECT_EQ(count, 3u);
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(NVML(nvmlDeviceGetHandleByUUID)(UuidText(2).c_str(), &device), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvmlDeviceGetIndex)(device, &index), NVML_SUCCESS);
    EXPECT_EQ(index, 2u);
    EXPECT_EQ(MemoryOf(device).total, uint64_t{24} << 30);
  });
}

TEST_F(NvmlTest, ReportsLinksOfACardWithoutNvLink) {
  InFreshProcess({}, [] {
    unsigned int generation = 0, lanes = 0;
    EXPECT_EQ(NVML(nvmlDeviceGetCurrPcieLinkGeneration)(Device(0), &generation), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvmlDeviceGetCurrPcieLinkWidth)(Device(0), &lanes), NVML_SUCCESS);
    EXPECT_EQ(generation, 4u);
    EXPECT_EQ(lanes, 16u);
    nvmlEnableState_t link = NVML_FEATURE_ENABLED;
    EXPECT_EQ(NVML(nvmlDeviceGetNvLinkState)(Device(0), 0, &link), NVML_SUCCESS);
    EXPECT_EQ(link, NVML_FEATURE_DISABLED);
  });
}

TEST_F(NvmlTest, MemoryOfAnotherProcessIsVisibleThroughTheSharedFile) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    SharedBudget budget(Path("shared"));
    if (!budget.Take(1, 40 * kMiB, 100 * kMiB)) _exit(1);
    (void)!write(ready[1], "", 1);
    pause();
  }
  char reported;
  ASSERT_EQ(read(ready[0], &reported, 1), 1);
  InFreshProcess({{"SIMCUDA_SHARED", Path("shared")}, {"SIMCUDA_DEVICES", "2"}}, [&] {
    EXPECT_EQ(MemoryOf(Device(0)).used, 0u);
    EXPECT_EQ(MemoryOf(Device(1)).used, 40 * kMiB);
    const auto processes = ProcessesOf(Device(1));
    ASSERT_EQ(processes.size(), 1u);
    EXPECT_EQ(processes[0].pid, static_cast<unsigned int>(holder));
    EXPECT_EQ(processes[0].usedGpuMemory, 40 * kMiB);
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, WNOHANG);
    while (!ProcessesOf(Device(1)).empty()) usleep(1000);
  });
  waitpid(holder, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(NvmlTest, ScriptSetsSizesAndProcessesByQuery) {
  WithScript(
      "device 1 total=80G reserved=1G process=12:2G process=13:-\n"
      "device 1 from=3 used=9G  # the third query\n",
      [] {
        EXPECT_EQ(MemoryOf(Device(0)).total, uint64_t{24} << 30);
        EXPECT_EQ(MemoryOf(Device(1)).used, uint64_t{2} << 30);
        EXPECT_EQ(MemoryOf(Device(1)).free, uint64_t{77} << 30);
        EXPECT_EQ(MemoryOf(Device(1)).used, uint64_t{9} << 30);
        const auto processes = ProcessesOf(Device(1));
        ASSERT_EQ(processes.size(), 2u);
        EXPECT_EQ(processes[1].pid, 13u);
        EXPECT_EQ(processes[1].usedGpuMemory,
                  static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE));
      });
}

TEST_F(NvmlTest, ScriptRefusesCallsByNameAndNumber) {
  WithScript("error nvmlInit_v2 9 times=1\nerror nvmlDeviceGetMemoryInfo_v2 3\n", [] {
    EXPECT_EQ(NVML(nvmlInit_v2)(), NVML_ERROR_DRIVER_NOT_LOADED);
    EXPECT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
    nvmlMemory_v2_t memory = {};
    memory.version = nvmlMemory_v2;
    EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2)(Device(0), &memory), NVML_ERROR_NOT_SUPPORTED);
    nvmlMemory_t first = {};
    EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo)(Device(0), &first), NVML_SUCCESS);
  });
}

TEST_F(NvmlTest, InstanceOfADeviceIsFoundByItsUuid) {
  WithScript("device 1/0 uuid=MIG-77 total=10G used=1G\n", [] {
    nvmlDevice_t instance = nullptr, device = nullptr;
    unsigned int index = 9, is_mig = 0;
    ASSERT_EQ(NVML(nvmlDeviceGetHandleByUUID)("MIG-77", &instance), NVML_SUCCESS);
    EXPECT_EQ(MemoryOf(instance).total, uint64_t{10} << 30);
    EXPECT_EQ(NVML(nvmlDeviceIsMigDeviceHandle)(instance, &is_mig), NVML_SUCCESS);
    EXPECT_EQ(is_mig, 1u);
    EXPECT_EQ(NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(instance, &device), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvmlDeviceGetIndex)(device, &index), NVML_SUCCESS);
    EXPECT_EQ(index, 1u);
  });
}

TEST(NvmlScriptTest, InvalidLineIsReported) {
  testing::internal::CaptureStderr();
  NvmlScript script;
  script.Parse("device 0 used=lots\nlatency nvmlInit_v2 20ms\n");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("used=lots"), std::string::npos);
  EXPECT_EQ(script.LatencyNs("nvmlInit_v2"), 20'000'000u);
  EXPECT_EQ(script.LatencyNs("nvmlShutdown"), 0u);
}

}  // namespace
}  // namespace sim
