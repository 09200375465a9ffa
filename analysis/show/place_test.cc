#include "analysis/show/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PlaceTest, OwnersOfAnAddressComeInOrder) {
  EventScript script;
  script.Alloc(0x10000, 0x1000);
  script.Block(0x10000, 0x200);
  script.FreeBlock(0x10000);
  script.Block(0x10000, 0x100);
  const Trace trace = script.Build();
  const Place place = PlaceAt(trace, 0x10080);
  EXPECT_THAT(place.outer, ElementsAre(0));
  EXPECT_THAT(place.inner, ElementsAre(1, 2));
  EXPECT_THAT(PlaceAt(trace, 0x10180).inner, ElementsAre(1));
}

TEST(PlaceTest, EndOfABlockIsNotInIt) {
  EventScript script;
  script.Alloc(0x1000, 0x10);
  const Trace trace = script.Build();
  EXPECT_THAT(PlaceAt(trace, 0x100f).outer, ElementsAre(0));
  EXPECT_TRUE(PlaceAt(trace, 0x1010).empty());
  EXPECT_TRUE(PlaceAt(trace, 0xfff).empty());
}

TEST(PlaceTest, NeighboursOfAnUnusedAddress) {
  EventScript script;
  script.Alloc(0x1000, 0x10);
  script.Alloc(0x3000, 0x10);
  script.Alloc(0x5000, 0x10);
  const Trace trace = script.Build();
  const Place place = PlaceAt(trace, 0x2000);
  EXPECT_EQ(place.below, 0u);
  EXPECT_EQ(place.above, 1u);
  EXPECT_EQ(PlaceAt(trace, 0x9000).above, kNoRow);
}

TEST(PlaceTest, HandleIsFoundByItsNumberAndItsMappingByTheAddress) {
  EventScript script;
  script.Create(0x77, 0x1000);
  script.Map(0x700000, 0x1000, 0x77);
  const Trace trace = script.Build();
  EXPECT_THAT(PlaceAt(trace, 0x77).outer, ElementsAre(0));
  EXPECT_THAT(PlaceAt(trace, 0x78).outer, IsEmpty());
  EXPECT_THAT(PlaceAt(trace, 0x700010).mappings, ElementsAre(0));
}

TEST(PlaceTest, SizeBeyondTheLastAddressDoesNotWrap) {
  EventScript script;
  script.Alloc(0x1000, UINT64_MAX);
  const Trace trace = script.Build();
  EXPECT_TRUE(PlaceAt(trace, 0x10).empty());
  EXPECT_THAT(PlaceAt(trace, UINT64_MAX).outer, ElementsAre(0));
}

}  // namespace
}  // namespace gmt::analysis
