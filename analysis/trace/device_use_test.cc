#include "analysis/trace/device_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class DeviceUseTest : public ::testing::Test {
 protected:
  DeviceUseTest() { script_.pid = 12; }

  // Adds a sample of NVML for device 0.
  void Nvml(uint64_t used, std::optional<uint64_t> ours, std::optional<uint64_t> others) {
    Sample& sample = script_.Sample(used, 1024 * kMiB);
    sample.set_source("nvml");
    sample.set_reserved_bytes(kMiB);
    if (ours) Add(sample, 12, *ours);
    if (others) Add(sample, 77, *others);
  }
  static void Add(Sample& sample, uint64_t pid, uint64_t bytes) {
    Sample::ProcessUse* use = sample.add_processes();
    use->set_pid(pid);
    use->set_bytes(bytes);
  }

  EventScript script_;
};

TEST_F(DeviceUseTest, ProcessBytesAreComparedWithBytesRecordedAtThatMoment) {
  script_.Alloc(0x200000, 100 * kMiB);
  Nvml(400 * kMiB, 150 * kMiB, 200 * kMiB);
  script_.Alloc(0x20000000, 60 * kMiB);
  script_.Free(0x200000);
  Nvml(300 * kMiB, 110 * kMiB, 180 * kMiB);
  const std::vector<DeviceUse> uses = FindDeviceUse(script_.Build());
  ASSERT_THAT(uses, SizeIs(1));
  EXPECT_EQ(uses[0].source, "nvml");
  EXPECT_EQ(uses[0].samples, 2u);
  EXPECT_EQ(uses[0].last.recorded_bytes, 60 * kMiB);
  EXPECT_EQ(uses[0].last.unrecorded(), static_cast<int64_t>(50 * kMiB));
  EXPECT_EQ(uses[0].last.others_bytes, 180 * kMiB);
  EXPECT_EQ(uses[0].fullest.used_bytes, 400 * kMiB);
  EXPECT_EQ(uses[0].fullest.recorded_bytes, 100 * kMiB);
  EXPECT_EQ(uses[0].fullest.unrecorded(), static_cast<int64_t>(50 * kMiB));
  EXPECT_EQ(uses[0].fullest.reserved_bytes, kMiB);
}

TEST_F(DeviceUseTest, SourceWithoutProcessesIsComparedAsAWhole) {
  script_.Alloc(0x200000, 100 * kMiB);
  script_.Sample(400 * kMiB, 1024 * kMiB).set_source("cudaMemGetInfo");
  const std::vector<DeviceUse> uses = FindDeviceUse(script_.Build());
  ASSERT_THAT(uses, SizeIs(1));
  EXPECT_FALSE(uses[0].last.process_bytes.has_value());
  EXPECT_EQ(uses[0].last.unrecorded(), static_cast<int64_t>(300 * kMiB));
}

TEST_F(DeviceUseTest, ListWithoutThisProcessGivesNoProcessBytes) {
  script_.Alloc(0x200000, 100 * kMiB);
  Nvml(400 * kMiB, std::nullopt, 300 * kMiB);
  const std::vector<DeviceUse> uses = FindDeviceUse(script_.Build());
  EXPECT_FALSE(uses[0].last.process_bytes.has_value());
  EXPECT_FALSE(uses[0].last.others_bytes.has_value());  // ours may be among them under another pid
}

TEST_F(DeviceUseTest, SourcesAreSeparate) {
  Nvml(400 * kMiB, 10 * kMiB, 20 * kMiB);
  script_.Sample(300 * kMiB, 1000 * kMiB).set_source("cudaMemGetInfo");
  EXPECT_THAT(FindDeviceUse(script_.Build()), SizeIs(2));
}

TEST_F(DeviceUseTest, HostMemoryAndBlocksAreNotCountedOnTheDevice) {
  script_.Alloc(0x200000, 100 * kMiB);
  script_.Block(0x200000, 50 * kMiB);
  Nvml(400 * kMiB, 150 * kMiB, 0);
  EXPECT_EQ(FindDeviceUse(script_.Build())[0].last.recorded_bytes, 100 * kMiB);
}

TEST_F(DeviceUseTest, RecordingWithoutSamplesHasNone) {
  script_.Alloc(0x200000, 100 * kMiB);
  EXPECT_THAT(FindDeviceUse(script_.Build()), IsEmpty());
}

}  // namespace
}  // namespace gmt::analysis
