#include "tests/simcuda/settings.h"

#include <gtest/gtest.h>

#include <map>

namespace sim {
namespace {

Settings FromMap(const std::map<std::string, std::string>& variables) {
  return Settings::From([&](const char* name) -> const char* {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(SettingsTest, EmptyEnvironmentGivesOneDeviceOf24GiB) {
  Settings settings = FromMap({});
  EXPECT_EQ(settings.memory, uint64_t{24} << 30);
  EXPECT_EQ(settings.devices, 1);
  EXPECT_EQ(settings.compute_major, 8);
  EXPECT_TRUE(settings.failures.empty());
  EXPECT_TRUE(settings.log.empty());
}

TEST(SettingsTest, SizesTakeSuffixes) {
  uint64_t bytes = 0;
  EXPECT_TRUE(ParseSize("4096", &bytes));
  EXPECT_EQ(bytes, 4096u);
  EXPECT_TRUE(ParseSize("512M", &bytes));
  EXPECT_EQ(bytes, uint64_t{512} << 20);
  EXPECT_TRUE(ParseSize("141GiB", &bytes));
  EXPECT_EQ(bytes, uint64_t{141} << 30);
  EXPECT_FALSE(ParseSize("lots", &bytes));
  EXPECT_FALSE(ParseSize("1.5G", &bytes));
}

TEST(SettingsTest, UnknownValueIsReportedAndLeavesTheDefault) {
  testing::internal::CaptureStderr();
  Settings settings = FromMap({{"SIMCUDA_MEMORY", "huge"}, {"SIMCUDA_DEVICES", "9"}});
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(settings.memory, uint64_t{24} << 30);
  EXPECT_EQ(settings.devices, 1);
  EXPECT_NE(text.find("SIMCUDA_MEMORY=huge"), std::string::npos);
  EXPECT_NE(text.find("SIMCUDA_DEVICES=9"), std::string::npos);
}

TEST(SettingsTest, LibrariesTakeNothingUnlessAsked) {
  EXPECT_EQ(FromMap({}).handle, 0u);
  EXPECT_EQ(FromMap({}).workspace, 0u);
  Settings settings = FromMap({{"SIMCUDA_HANDLE", "64K"}, {"SIMCUDA_WORKSPACE", "3M"}});
  EXPECT_EQ(settings.handle, uint64_t{64} << 10);
  EXPECT_EQ(settings.workspace, uint64_t{3} << 20);
}

TEST(SettingsTest, LatencyIsGivenPerGroup) {
  Settings settings = FromMap({{"SIMCUDA_LATENCY", "alloc=20us,free=1ms"}});
  EXPECT_EQ(settings.latency_ns[static_cast<size_t>(CallGroup::kAlloc)], 20'000u);
  EXPECT_EQ(settings.latency_ns[static_cast<size_t>(CallGroup::kFree)], 1'000'000u);
  EXPECT_EQ(settings.latency_ns[static_cast<size_t>(CallGroup::kLaunch)], 0u);
}

TEST(SettingsTest, FailureNamesCallNumberAndCode) {
  Settings settings = FromMap({{"SIMCUDA_FAIL", "cuMemAlloc_v2:5,cuMemFree_v2:3=700,cuMemMap:2+"}});
  ASSERT_EQ(settings.failures.size(), 3u);
  EXPECT_EQ(settings.failures[0].call, "cuMemAlloc_v2");
  EXPECT_EQ(settings.failures[0].nth, 5u);
  EXPECT_EQ(settings.failures[0].code, 2);
  EXPECT_EQ(settings.failures[1].code, 700);
  EXPECT_TRUE(settings.failures[2].onwards);
}

TEST(SettingsTest, VisibleDevicesLimitTheCount) {
  EXPECT_EQ(FromMap({{"SIMCUDA_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", "0,2"}}).devices, 2);
  EXPECT_EQ(FromMap({{"CUDA_VISIBLE_DEVICES", ""}}).devices, 0);
  EXPECT_EQ(FromMap({{"CUDA_VISIBLE_DEVICES", "-1"}}).devices, 0);
}

}  // namespace
}  // namespace sim
