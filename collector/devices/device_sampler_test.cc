#include "collector/devices/device_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "collector/testing/fake_device_source.h"

namespace gmt::collector {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kLong = 3600 * kSecond, kShort = kMillisecond;
constexpr uint64_t kPatience = 60 * kSecond;  // ends a test that hangs

class DeviceSamplerTest : public ::testing::Test {
 protected:
  DeviceSamplerTest() {
    machine_->devices["GPU-a"] = {7, "GPU-a", 3, "9.0"};
    machine_->memory[7] = {100, 40, std::nullopt, std::nullopt};
  }

  std::unique_ptr<DeviceSampler> Make(uint64_t every_ns) {
    return std::make_unique<DeviceSampler>(std::make_unique<FakeDeviceSource>(machine_), every_ns);
  }

  std::shared_ptr<FakeMachine> machine_ = std::make_shared<FakeMachine>();
};

TEST_F(DeviceSamplerTest, SourceIsOpenedOnlyWhenADeviceIsUsed) {
  auto sampler = Make(kShort);
  EXPECT_FALSE(sampler->Refresh(kPatience));
  sampler.reset();
  EXPECT_EQ(machine_->opened, 0);
}

TEST_F(DeviceSamplerTest, WatchedDeviceIsFoundAndReadRepeatedly) {
  auto sampler = Make(kShort);
  sampler->Watch(0, {"GPU-a", ""});
  machine_->AwaitReads(3);
  const auto found = sampler->TakeFound();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].device, 0u);
  EXPECT_EQ(found[0].as.physical_index, 3u);
  const auto readings = sampler->TakeReadings();
  ASSERT_GE(readings.size(), 2u);  // the third may not be stored yet
  EXPECT_EQ(readings[0].values.used_bytes, 40u);
  EXPECT_LE(readings[0].time_ns, readings[1].time_ns);
  EXPECT_TRUE(sampler->has_read());
  EXPECT_EQ(sampler->Trouble(), "");
}

TEST_F(DeviceSamplerTest, RefreshYieldsACurrentReading) {
  auto sampler = Make(kLong);
  sampler->Watch(0, {"GPU-a", ""});
  ASSERT_TRUE(sampler->RefreshAtEnd(kPatience));
  sampler->TakeReadings();
  machine_->Set(7, {100, 90, std::nullopt, std::nullopt});
  ASSERT_TRUE(sampler->Refresh(kPatience));
  const auto readings = sampler->TakeReadings();
  ASSERT_THAT(readings, SizeIs(1));
  EXPECT_EQ(readings[0].values.used_bytes, 90u);
}

TEST_F(DeviceSamplerTest, FirstReadingIsWaitedForAtTheEndOnly) {
  machine_->Hang(true);
  auto sampler = Make(kLong);
  sampler->Watch(0, {"GPU-a", ""});
  EXPECT_FALSE(sampler->Refresh(kPatience));  // the duration of a reading is still unknown
  machine_->Hang(false);
  EXPECT_TRUE(sampler->RefreshAtEnd(kPatience));
  EXPECT_THAT(sampler->TakeReadings(), ::testing::Not(IsEmpty()));
}

TEST_F(DeviceSamplerTest, SlowSourceIsNotWaitedFor) {
  machine_->read_takes = std::chrono::milliseconds(30);
  auto sampler = Make(kLong);
  sampler->Watch(0, {"GPU-a", ""});
  ASSERT_TRUE(sampler->RefreshAtEnd(kPatience));
  machine_->Hang(true);  // a caller that waits now hangs
  EXPECT_FALSE(sampler->Refresh(kMillisecond));
  machine_->Hang(false);
}

TEST_F(DeviceSamplerTest, HangingSourceIsLeftBehind) {
  machine_->Hang(true);
  auto sampler = Make(kShort);
  sampler->Watch(0, {"GPU-a", ""});
  machine_->AwaitReading();
  sampler.reset();
  machine_->Hang(false);
  machine_->AwaitReadsInAll(1);  // the thread ends and frees everything that it uses
}

TEST_F(DeviceSamplerTest, SourceThatCannotBeOpenedReportsTheReason) {
  machine_->open = absl::NotFoundError("no library");
  auto sampler = Make(kShort);
  sampler->Watch(0, {"GPU-a", ""});
  while (sampler->Trouble().empty()) std::this_thread::yield();
  EXPECT_EQ(sampler->Trouble(), "no library");
  EXPECT_FALSE(sampler->RefreshAtEnd(kPatience));
  EXPECT_FALSE(sampler->has_read());
}

TEST_F(DeviceSamplerTest, UnknownOrFailingDeviceDoesNotAffectOthers) {
  machine_->devices["GPU-b"] = {8, "GPU-b", 1, ""};
  machine_->refusals[8] = absl::UnavailableError("GPU is lost");
  auto sampler = Make(kShort);
  sampler->Watch(0, {"GPU-a", ""});
  sampler->Watch(1, {"GPU-b", ""});
  sampler->Watch(2, {"GPU-c", ""});
  ASSERT_TRUE(sampler->RefreshAtEnd(kPatience));
  ASSERT_TRUE(sampler->Refresh(kPatience));
  for (const auto& reading : sampler->TakeReadings()) EXPECT_EQ(reading.device, 0u);
  EXPECT_THAT(sampler->Trouble(), HasSubstr("GPU 1: GPU is lost"));
  EXPECT_THAT(sampler->Trouble(), HasSubstr("GPU 2: NVML does not know it"));
}

}  // namespace
}  // namespace gmt::collector
