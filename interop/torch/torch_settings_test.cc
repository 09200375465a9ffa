// The expected values are those in the snapshots of PyTorch 2.11 for these texts, and of 2.9.

#include "interop/torch/torch_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gmt::interop {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(TorchSettingsTest, EmptyTextHasPyTorchsDefaults) {
  const TorchSettings settings = ParseTorchSettings("");
  EXPECT_EQ(settings.max_split_size, -1);
  EXPECT_EQ(settings.garbage_collection_threshold, 0);
  EXPECT_FALSE(settings.expandable_segments);
  EXPECT_EQ(settings.pinned_num_register_threads, 1);
  EXPECT_THAT(settings.roundup_power2_divisions, Each(0));
  EXPECT_THAT(settings.others, IsEmpty());
}

TEST(TorchSettingsTest, UnitsAreThoseOfTheSnapshot) {
  const TorchSettings settings = ParseTorchSettings(
      "max_split_size_mb:128, garbage_collection_threshold:0.6, expandable_segments:True");
  EXPECT_EQ(settings.max_split_size, 134217728);
  EXPECT_EQ(settings.garbage_collection_threshold, 0.6);
  EXPECT_TRUE(settings.expandable_segments);
}

TEST(TorchSettingsTest, OneDivisionAppliesToAllSizes) {
  EXPECT_THAT(ParseTorchSettings("roundup_power2_divisions:4").roundup_power2_divisions, Each(4));
}

TEST(TorchSettingsTest, FirstAndLastDivisionsExtendToAllSizes) {
  EXPECT_THAT(ParseTorchSettings("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
                  .roundup_power2_divisions,
              ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8));
  EXPECT_THAT(
      ParseTorchSettings("roundup_power2_divisions:[2:2,>:4,512:1]").roundup_power2_divisions,
      ElementsAre(2, 2, 4, 4, 4, 4, 4, 4, 4, 1, 4, 4, 4, 4, 4, 4));
  EXPECT_THAT(
      ParseTorchSettings("roundup_power2_divisions:[256:1,512:2,>:8]", analysis::TorchVersion{2, 9})
          .roundup_power2_divisions,
      ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 8, 8, 8, 8, 8, 8, 8));
}

TEST(TorchSettingsTest, OptionsThatSnapshotsDoNotContainAreKept) {
  const TorchSettings settings =
      ParseTorchSettings("backend:native,max_split_size_mb:64,large_segment_size_mb:40,odd");
  EXPECT_EQ(settings.max_split_size, 64 << 20);
  EXPECT_THAT(settings.others, ElementsAre(Pair("backend", "native"),
                                           Pair("large_segment_size_mb", "40"), Pair("odd", "")));
}

TEST(TorchSettingsTest, ValuesThatPyTorchRejectsAreKeptAsText) {
  const TorchSettings settings = ParseTorchSettings(
      "max_split_size_mb:many,expandable_segments:true,roundup_power2_divisions:[300:4]");
  EXPECT_EQ(settings.max_split_size, -1);
  EXPECT_THAT(settings.others,
              ElementsAre(Pair("max_split_size_mb", "many"), Pair("expandable_segments", "true"),
                          Pair("roundup_power2_divisions", "[300:4]")));
}

TEST(TorchSettingsTest, UnbalancedBracketsDoNoHarm) {
  for (const char* text : {"[", "]", "a:[", "roundup_power2_divisions:[", ":", ",,", "[[:,]"}) {
    EXPECT_EQ(ParseTorchSettings(text).max_split_size, -1) << text;
  }
}

}  // namespace
}  // namespace gmt::interop
