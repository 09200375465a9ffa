#include "tests/simcuda/address_space.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

TEST(AddressSpaceTest, FirstFitTakesTheLowestSufficientGap) {
  AddressSpace space(0x1000, 0x1000);
  EXPECT_EQ(space.Take(0x100, 1), 0x1000u);
  EXPECT_EQ(space.Take(0x200, 1), 0x1100u);
  EXPECT_EQ(space.Take(0x100, 1), 0x1300u);
  space.Release(0x1000, 0x100);
  EXPECT_EQ(space.Take(0x180, 1), 0x1400u);
  EXPECT_EQ(space.Take(0x80, 1), 0x1000u);
}

TEST(AddressSpaceTest, TakesAtOrAboveAnAddressIfItCan) {
  AddressSpace space(0x1000, 0x1000);
  EXPECT_EQ(space.Take(0x100, 0x100, 0x1780), 0x1800u);
  EXPECT_EQ(space.Take(0x100, 0x100, 0x1780), 0x1900u);
  EXPECT_EQ(space.Take(0x700, 0x100, 0x1780), 0x1000u);
  EXPECT_EQ(space.Take(0x700, 0x100, 0x1780), 0u);
  EXPECT_EQ(space.Take(0x100, 0x100, 0x9000), 0x1700u);
}

TEST(AddressSpaceTest, FreedNeighboursMerge) {
  AddressSpace space(0x1000, 0x300);
  space.Take(0x300, 1);
  space.Release(0x1000, 0x100);
  space.Release(0x1200, 0x100);
  EXPECT_EQ(space.Take(0x300, 1), 0u);
  space.Release(0x1100, 0x100);
  EXPECT_EQ(space.free_ranges().size(), 1u);
  EXPECT_EQ(space.Take(0x300, 1), 0x1000u);
}

TEST(AddressSpaceTest, AlignmentPaddingStaysFree) {
  AddressSpace space(0x1100, 0x2000);
  EXPECT_EQ(space.Take(0x1000, 0x1000), 0x2000u);
  EXPECT_EQ(space.Take(0x100, 1), 0x1100u);
}

TEST(AddressSpaceTest, ExactAddressIsRefusedIfPartOfItIsTaken) {
  AddressSpace space(0x1000, 0x1000);
  EXPECT_TRUE(space.TakeAt(0x1800, 0x100));
  EXPECT_FALSE(space.TakeAt(0x17ff, 0x10));
  EXPECT_FALSE(space.TakeAt(0x0800, 0x10));
  EXPECT_TRUE(space.TakeAt(0x1900, 0x700));
  EXPECT_FALSE(space.TakeAt(0x2000, 1));
}

TEST(AddressSpaceTest, FullSpaceReturnsZero) {
  AddressSpace space(0x1000, 0x100);
  EXPECT_EQ(space.Take(0x101, 1), 0u);
  EXPECT_EQ(space.Take(0x100, 1), 0x1000u);
  EXPECT_EQ(space.Take(1, 1), 0u);
}

}  // namespace
}  // namespace sim
