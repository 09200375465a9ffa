#include "analysis/trace/row_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

using ::testing::SizeIs;

TEST(RowKindsTest, RowsThatDifferInSizeAndAddressAloneShareAKind) {
  EventScript script;
  script.Block(0x1000, 512);
  script.Block(0x2000, 1024);
  const Trace trace = script.Build();
  const RowKinds kinds(trace);
  ASSERT_EQ(trace.rows.count(), 2u);
  EXPECT_THAT(kinds.all(), SizeIs(1));
  EXPECT_EQ(kinds.NumberOf(0), kinds.NumberOf(1));
}

TEST(RowKindsTest, KindHasTheColumnsOfEachRow) {
  EventScript script;
  script.Alloc(0x100000, 4096);
  script.Block(0x100000, 512);
  script.Block(0x900000, 512);
  script.Alloc(0x200000, 4096);
  const Trace trace = script.Build();
  const RowKinds kinds(trace);
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    const RowKind& kind = kinds.Of(row);
    EXPECT_EQ(kind.device, trace.rows.device[row]) << row;
    EXPECT_EQ(kind.heap, trace.rows.heap[row]) << row;
    EXPECT_EQ(kind.flags, trace.rows.flags[row]) << row;
    EXPECT_EQ(kind.memory, trace.rows.memory[row]) << row;
    EXPECT_EQ(kind.is_block(), trace.rows.IsBlock(row)) << row;
  }
  EXPECT_NE(kinds.NumberOf(0), kinds.NumberOf(3));  // one holds a block
}

TEST(RowKindsTest, PoolsDistinguishRowsThatAreOtherwiseEqual) {
  EventScript script;
  for (uint64_t i = 0; i < 4; ++i) {
    format::Event& block = script.Block(0x100000 + i * 0x1000, 512);
    block.present |= format::kHasPool;
    block.pool = i == 2 ? 9 : 0;
  }
  const Trace trace = script.Build();
  const RowKinds kinds(trace);
  for (RowId row = 0; row < 4; ++row) EXPECT_EQ(kinds.Of(row).is_in_pool, row == 2) << row;
}

TEST(RowKindsTest, RowsFromBeforeAreThoseOfStepZero) {
  EventScript script;
  script.Block(0x1000, 512);
  script.FreeBlock(0x9000).size = 512;
  script.FreeBlock(0x1000);
  script.FreeBlock(0xa000).size = 512;
  const Trace trace = script.Build();
  std::vector<RowId> of_step_zero;
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    if (trace.rows.birth[row] == 0) of_step_zero.push_back(row);
  }
  EXPECT_THAT(of_step_zero, SizeIs(2));
  EXPECT_EQ(RowKinds(trace).from_before(), of_step_zero);
}

TEST(RowKindsTest, PropertyIsLookedUpByRow) {
  EventScript script;
  script.Alloc(0x100000, 4096);
  script.Block(0x100000, 512);
  const Trace trace = script.Build();
  const RowKinds kinds(trace);
  const KindProperty is_block(kinds, [](const RowKind& kind) { return kind.is_block(); });
  EXPECT_FALSE(is_block.Of(0));
  EXPECT_TRUE(is_block.Of(1));
}

}  // namespace
}  // namespace gmt::analysis
