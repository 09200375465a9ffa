#include "viewer/served/tile_slabs.h"

#include <gmock/gmock.h>

#include <cmath>

#include "viewer/slab/slab.h"

namespace gmt::viewer {
namespace {

using slab::Slab;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(TileSlabsTest, CurveContainsItsSeriesByName) {
  CurveTile tile;
  tile.event = {1, 2};
  tile.ns = {10, 20};
  tile.series = {{Series::kReserved, {1, NAN}, {2, NAN}, {1.5, NAN}}};
  tile.samples = {{Series::kProcessUsed, {NAN, 7}, {NAN, 15}}};
  const auto slab = Slab::Parse(CurveSlab(tile));
  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_EQ(slab->kind(), "curve");
  EXPECT_THAT(*slab->Values<uint32_t>("event"), ElementsAre(1, 2));
  EXPECT_THAT(*slab->Values<double>("reserved.max"), ElementsAre(2, testing::IsNan()));
  EXPECT_THAT(*slab->Values<double>("process_used.value"), ElementsAre(testing::IsNan(), 7));
  EXPECT_THAT(*slab->Values<double>("process_used.ns"), ElementsAre(testing::IsNan(), 15));
  EXPECT_THAT(*slab->Values<double>("categories"), IsEmpty());
  EXPECT_FALSE(slab->Values<double>("live.min").ok());
}

TEST(TileSlabsTest, PassingCurveContainsItsBytes) {
  const auto slab = Slab::Parse(PassingSlab({{512, NAN}}));
  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_EQ(slab->kind(), "passing");
  EXPECT_THAT(*slab->Values<double>("live"), ElementsAre(512, testing::IsNan()));
}

TEST(TileSlabsTest, BlocksContainTheirRunsAndSpaces) {
  BlockTile tile;
  tile.row = {7, kNoRow};
  tile.start = {0, 0};
  tile.end = {HUGE_VAL, 0};
  tile.size = {512, 0};
  tile.place = {0, 0};
  tile.stack = {1, 0};
  tile.forward_stack = {0, 0};
  tile.key = {9, 0};
  tile.category = {1, 0};
  tile.flags = {kNotFreed, 0};
  tile.stream = {0, 0};
  tile.thread = {0, 0};
  tile.role = {3, 0};
  tile.dtype = {1, 0};
  tile.run_begin = {0, 0, 2};
  tile.run_column = {0, 5};
  tile.run_bytes = {100, 0};
  tile.hidden = 3;
  tile.spaces = {{0, 4096, 0x7f00, "pool", {{1, HUGE_VAL}}}};
  const auto slab = Slab::Parse(BlockSlab(tile));
  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_EQ(slab->Field("hidden"), 3);
  EXPECT_EQ(
      slab->Field("spaces").dump(),
      R"([{"place":0.0,"size":4096.0,"address":"0x7f00","label":"pool","lives":[[1.0,null]]}])");
  EXPECT_THAT(*slab->Values<uint32_t>("row"), ElementsAre(7, kNoRow));
  EXPECT_THAT(*slab->Values<double>("end"), ElementsAre(HUGE_VAL, 0));
  EXPECT_THAT(*slab->Values<uint8_t>("role"), ElementsAre(3, 0));
  EXPECT_THAT(*slab->Values<uint16_t>("dtype"), ElementsAre(1, 0));
  EXPECT_THAT(*slab->Values<uint32_t>("run_begin"), ElementsAre(0, 0, 2));
  EXPECT_THAT(*slab->Values<uint16_t>("run_column"), ElementsAre(0, 5));
}

TEST(TileSlabsTest, EmptyTileIsComplete) {
  const auto slab = Slab::Parse(BlockSlab({}));
  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_THAT(*slab->Values<uint32_t>("run_begin"), ElementsAre(0));
}

TEST(TileSlabsTest, FlameGraphContainsItsNames) {
  FlameTree tree;
  tree.parent = {0, 0};
  tree.bytes = {5, 5};
  tree.blocks = {1, 1};
  tree.name = {0, 1};
  tree.names = {"all", "f\tx.py:1\tuser"};
  tree.category = {3, 3};
  tree.category_bytes = {4, 4};
  tree.total = 5;
  const auto slab = Slab::Parse(FlameSlab(tree));
  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_EQ(slab->Field("names")[1], "f\tx.py:1\tuser");
  EXPECT_EQ(slab->Field("total"), 5);
  EXPECT_THAT(*slab->Values<double>("before"), IsEmpty());
  EXPECT_THAT(*slab->Values<uint8_t>("category"), ElementsAre(3, 3));
  EXPECT_THAT(*slab->Values<double>("category_bytes"), ElementsAre(4, 4));
}

}  // namespace
}  // namespace gmt::viewer
