#include "tests/simcuda/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/simcuda/device_identity.h"

namespace sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Settings FromMap(const std::map<std::string, std::string>& variables) {
  return Settings::From([&](const char* name) -> const char* {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(SettingsTest, EmptyEnvironmentGivesOneDeviceOf24GiB) {
  Settings settings = FromMap({});
  EXPECT_EQ(settings.memory, uint64_t{24} << 30);
  EXPECT_THAT(settings.visible, ElementsAre(0));
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

TEST(SettingsTest, TimesAndCuptiOptionsAreOffByDefault) {
  Settings none = FromMap({});
  EXPECT_EQ(none.kernel_time_ns, 0u);
  EXPECT_EQ(none.bandwidth, 0u);
  EXPECT_FALSE(none.virtual_clock);
  EXPECT_FALSE(none.log_streams);
  EXPECT_EQ(none.cupti, CuptiMode::kOn);
  Settings asked = FromMap({{"SIMCUDA_KERNEL_TIME", "50us"},
                            {"SIMCUDA_BANDWIDTH", "20G"},
                            {"SIMCUDA_CLOCK", "virtual"},
                            {"SIMCUDA_LOG_STREAMS", "1"},
                            {"SIMCUDA_CUPTI", "refuse"},
                            {"SIMCUDA_CUPTI_MEMORY", "10M"},
                            {"SIMCUDA_CUPTI_MULTI", "1"}});
  EXPECT_EQ(asked.kernel_time_ns, 50'000u);
  EXPECT_EQ(asked.bandwidth, uint64_t{20} << 30);
  EXPECT_TRUE(asked.virtual_clock);
  EXPECT_TRUE(asked.log_streams);
  EXPECT_EQ(asked.cupti, CuptiMode::kRefuse);
  EXPECT_EQ(asked.cupti_memory, uint64_t{10} << 20);
  EXPECT_TRUE(asked.cupti_multi);
}

TEST(SettingsTest, UnknownValueIsReportedAndLeavesTheDefault) {
  testing::internal::CaptureStderr();
  Settings settings = FromMap({{"SIMCUDA_MEMORY", "huge"}, {"SIMCUDA_DEVICES", "9"}});
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(settings.memory, uint64_t{24} << 30);
  EXPECT_EQ(settings.machine_devices, 1);
  EXPECT_NE(text.find("SIMCUDA_MEMORY=huge"), std::string::npos);
  EXPECT_NE(text.find("SIMCUDA_DEVICES=9"), std::string::npos);
}

TEST(SettingsTest, LibrariesTakeNothingByDefault) {
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

std::vector<int> Visible(const std::string& list, const std::string& order = "") {
  return FromMap({{"SIMCUDA_DEVICES", "4"},
                  {"SIMCUDA_ORDER", "2,0"},
                  {"CUDA_DEVICE_ORDER", order},
                  {"CUDA_VISIBLE_DEVICES", list}})
      .visible;
}

TEST(SettingsTest, VisibleDevicesComeInTheOrderOfTheList) {
  EXPECT_THAT(Visible("3,1", "PCI_BUS_ID"), ElementsAre(3, 1));
  EXPECT_THAT(Visible("0,1,2,3"), ElementsAre(2, 0, 1, 3));  // the fastest one is number 0
  EXPECT_THAT(Visible(""), IsEmpty());
  EXPECT_THAT(Visible("-1"), IsEmpty());
}

TEST(SettingsTest, UnknownVisibleDeviceEndsTheList) {
  EXPECT_THAT(Visible("1,-1,2", "PCI_BUS_ID"), ElementsAre(1));
  EXPECT_THAT(Visible("1,9,2", "PCI_BUS_ID"), ElementsAre(1));
  EXPECT_THAT(Visible("1,2,1,3", "PCI_BUS_ID"), ElementsAre(1, 2));
}

TEST(SettingsTest, VisibleDeviceMayBeAUuidOrItsPrefix) {
  EXPECT_EQ(UuidText(2), "GPU-322d7369-6d75-6c61-7465-642d67707500");
  EXPECT_THAT(Visible(UuidText(3) + "," + UuidText(0)), ElementsAre(3, 0));
  EXPECT_THAT(Visible("GPU-312d,GPU-332d7369"), ElementsAre(1, 3));
  EXPECT_THAT(Visible("GPU-3"), IsEmpty());  // a prefix of all UUIDs
  EXPECT_THAT(Visible("MIG-312d7369"), IsEmpty());
}

TEST(SettingsTest, DevicesMissingInTheOrderComeLast) {
  EXPECT_THAT(CudaOrder("2,0,2,7", "", 4), ElementsAre(2, 0, 1, 3));
  EXPECT_THAT(CudaOrder("2,0", "FASTEST_FIRST", 3), ElementsAre(2, 0, 1));
  EXPECT_THAT(CudaOrder("2,0", "PCI_BUS_ID", 3), ElementsAre(0, 1, 2));
}

TEST(SettingsTest, PciBusIdMapsBackToItsDevice) {
  for (int device = 0; device < 8; ++device)
    EXPECT_EQ(PhysicalOfPciBusId(PciBusIdOf(device), 8), device);
  EXPECT_EQ(PhysicalOfPciBusId("00000000:03:00.0", 8), 2);
  EXPECT_EQ(PhysicalOfPciBusId("0000:09:00.0", 8), -1);
  EXPECT_EQ(PhysicalOfPciBusId("03", 8), -1);
}

}  // namespace
}  // namespace sim
