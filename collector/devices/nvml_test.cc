// Uses the NVML of the simulated machine. Each test runs in its own process, because that library
// reads its script only once.
#include "collector/devices/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "format/units.h"

namespace gmt::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr char kFirst[] = "GPU-302d7369-6d75-6c61-7465-642d67707500";
constexpr char kSecondUuid[] = "GPU-312d7369-6d75-6c61-7465-642d67707500";

// Runs `body` in a process in which NVML answers as in `script`.
void WithScript(const std::string& script, const std::function<void()>& body) {
  char path[] = "/tmp/nvml_test.XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(path) << script;
  EXPECT_EXIT(
      {
        setenv("SIMCUDA_NVML", path, 1);
        setenv("SIMCUDA_DEVICES", "2", 1);
        body();
        _exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
  unlink(path);
}

TEST(NvmlTest, LibraryIsSearchedBesideTheDriverFirst) {
  EXPECT_THAT(NvmlCandidates("", "/opt/driver/libcuda.so.1"),
              ElementsAre("/opt/driver/libnvidia-ml.so.1", "libnvidia-ml.so.1",
                          "/usr/lib/wsl/lib/libnvidia-ml.so.1",
                          "/run/opengl-driver/lib/libnvidia-ml.so.1"));
  EXPECT_THAT(NvmlCandidates("/opt/nvml.so", "/opt/driver/libcuda.so.1"),
              ElementsAre("/opt/nvml.so", "/opt/nvml.so/libnvidia-ml.so.1"));
  EXPECT_THAT(NvmlCandidates("off", "/opt/driver/libcuda.so.1"), IsEmpty());
}

TEST(NvmlTest, MissingLibraryIsReported) {
  Nvml nvml("/nonexistent/nvml.so");
  EXPECT_THAT(std::string(nvml.Open().message()), HasSubstr("/nonexistent/nvml.so"));
  EXPECT_THAT(std::string(Nvml("off").Open().message()), HasSubstr("GPUMEMTRACE_NVML=off"));
}

TEST(NvmlTest, OtherLibraryIsRefused) {
  Nvml nvml("libc.so.6");
  EXPECT_THAT(std::string(nvml.Open().message()), HasSubstr("is not NVML"));
}

TEST(NvmlTest, InitialisationErrorIsQuoted) {
  WithScript("error nvmlInit_v2 18\n", [] {
    Nvml nvml(GMT_SIMULATED_NVML);
    EXPECT_THAT(std::string(nvml.Open().message()),
                HasSubstr("NVML says: Driver/library version mismatch"));
  });
}

TEST(NvmlTest, ReadsMemoryAndProcessesOfTheDeviceWithAUuid) {
  WithScript("device 1 total=80G reserved=1G process=12:2G process=13:-\n", [] {
    Nvml nvml(GMT_SIMULATED_NVML);
    ASSERT_TRUE(nvml.Open().ok());
    const auto found = nvml.Find({kSecondUuid, "0000:01:00.0"});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->physical_index, 1u);
    EXPECT_EQ(found->compute_capability, "8.0");
    const auto reading = nvml.Read(found->handle);
    ASSERT_TRUE(reading.ok());
    EXPECT_EQ(reading->total_bytes, 80 * kGiB);
    EXPECT_EQ(reading->used_bytes, 3 * kGiB);  // including reserved memory
    EXPECT_EQ(reading->reserved_bytes, kGiB);
    ASSERT_TRUE(reading->processes.has_value());
    EXPECT_THAT(*reading->processes,
                ElementsAre(ProcessMemory{12, 2 * kGiB}, ProcessMemory{13, std::nullopt}));
  });
}

TEST(NvmlTest, DeviceWithAnUnknownUuidIsNotFoundByItsBusId) {
  WithScript("", [] {
    Nvml nvml(GMT_SIMULATED_NVML);
    ASSERT_TRUE(nvml.Open().ok());
    EXPECT_TRUE(absl::IsNotFound(nvml.Find({"GPU-0", "0000:01:00.0"}).status()));
    const auto without_uuid = nvml.Find({"", "0000:02:00.0"});
    ASSERT_TRUE(without_uuid.ok());
    EXPECT_EQ(without_uuid->uuid, kSecondUuid);
  });
}

TEST(NvmlTest, MigInstanceIsFoundByItsCudaUuid) {
  const std::string instance = "MIG-00000000-0000-0000-0000-000000000077";
  WithScript("device 1/0 uuid=" + instance + " total=10G used=1G\n", [&] {
    Nvml nvml(GMT_SIMULATED_NVML);
    ASSERT_TRUE(nvml.Open().ok());
    const auto found = nvml.Find({"GPU-00000000-0000-0000-0000-000000000077", "0000:02:00.0"});
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->uuid, instance);
    EXPECT_EQ(found->physical_index, 1u);
    EXPECT_EQ(nvml.Read(found->handle)->total_bytes, 10 * kGiB);
  });
}

TEST(NvmlTest, OlderFunctionsAreUsedWithAnOlderDriver) {
  WithScript(
      "device 0 total=80G reserved=1G process=12:2G\n"
      "error nvmlDeviceGetMemoryInfo_v2 13\n"
      "error nvmlDeviceGetComputeRunningProcesses_v3 13\n"
      "error nvmlDeviceGetComputeRunningProcesses_v2 13\n",
      [] {
        Nvml nvml(GMT_SIMULATED_NVML);
        ASSERT_TRUE(nvml.Open().ok());
        const auto reading = nvml.Read(nvml.Find({kFirst, ""})->handle);
        ASSERT_TRUE(reading.ok());
        EXPECT_EQ(reading->used_bytes, 3 * kGiB);
        EXPECT_FALSE(reading->reserved_bytes.has_value());
        EXPECT_THAT(*reading->processes, ElementsAre(ProcessMemory{12, 2 * kGiB}));
      });
}

TEST(NvmlTest, RefusedProcessListIsNotAnEmptyOne) {
  WithScript(
      "error nvmlDeviceGetComputeRunningProcesses_v3 4\n"
      "error nvmlDeviceGetComputeRunningProcesses_v2 4\n"
      "error nvmlDeviceGetComputeRunningProcesses 4\n",
      [] {
        Nvml nvml(GMT_SIMULATED_NVML);
        ASSERT_TRUE(nvml.Open().ok());
        const auto reading = nvml.Read(nvml.Find({kFirst, ""})->handle);
        ASSERT_TRUE(reading.ok());
        EXPECT_FALSE(reading->processes.has_value());
      });
}

TEST(NvmlTest, DeviceWithoutMemoryInfoIsAnError) {
  WithScript("error nvmlDeviceGetMemoryInfo_v2 3\nerror nvmlDeviceGetMemoryInfo 3\n", [] {
    Nvml nvml(GMT_SIMULATED_NVML);
    ASSERT_TRUE(nvml.Open().ok());
    const auto reading = nvml.Read(nvml.Find({kFirst, ""})->handle);
    EXPECT_THAT(std::string(reading.status().message()), HasSubstr("Not Supported"));
  });
}

TEST(NvmlTest, ListOfManyProcessesIsRead) {
  std::string script = "device 0 total=80G";
  for (int pid = 1; pid <= 200; ++pid) script += " process=" + std::to_string(pid) + ":4M";
  WithScript(script + "\n", [] {
    Nvml nvml(GMT_SIMULATED_NVML);
    ASSERT_TRUE(nvml.Open().ok());
    EXPECT_EQ(nvml.Read(nvml.Find({kFirst, ""})->handle)->processes->size(), 200u);
  });
}

}  // namespace
}  // namespace gmt::collector
