#include "analysis/trace/reconciliation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class ReconciliationTest : public ::testing::Test {
 protected:
  Reconciliation Only() {
    const Trace trace = script_.Build();
    EXPECT_THAT(trace.reconciliations, SizeIs(1));
    return trace.reconciliations.empty() ? Reconciliation() : trace.reconciliations[0];
  }
  EventScript script_;
};

TEST_F(ReconciliationTest, SumsOfAWholeRecordingMatchTheAllocators) {
  script_.Alloc(0x200000, 2 * kMiB);
  script_.Totals(script_.Block(0x200000, 512), 512, 2 * kMiB);
  script_.Totals(script_.Block(0x200200, 1024), 1536, 2 * kMiB);
  script_.Totals(script_.FreeBlock(0x200000), 1024, 2 * kMiB);
  script_.Totals(script_.FreeBlock(0x200200), 0, 2 * kMiB);
  script_.Free(0x200000);
  script_.Alloc(0x800000, 20 * kMiB);
  script_.Totals(script_.Block(0x800000, kMiB), kMiB, 20 * kMiB);
  const Reconciliation found = Only();
  EXPECT_EQ(found.heap, "pytorch");
  EXPECT_EQ(found.allocated.compared, 5u);
  EXPECT_EQ(found.allocated.different, 0u);
  EXPECT_EQ(found.reserved.compared, 5u);
  EXPECT_EQ(found.reserved.different, 0u);
}

TEST_F(ReconciliationTest, MissedBlockIsFoundFromTheNextEventUntilItsFree) {
  script_.Alloc(0x200000, 2 * kMiB);
  script_.Totals(script_.Block(0x200000, 512), 512, 2 * kMiB);
  script_.Totals(script_.Block(0x200400, 512), 2048, 2 * kMiB);  // 1024 at 0x200600 was missed
  script_.Totals(script_.FreeBlock(0x200000), 1536, 2 * kMiB);
  const TotalCheck allocated = Only().allocated;
  EXPECT_EQ(allocated.different, 2u);
  EXPECT_EQ(allocated.first.t_ns, 3 * EventScript::kStep_ns);
  EXPECT_EQ(allocated.first.ours, 1024u);
  EXPECT_EQ(allocated.first.theirs, 2048u);
  EXPECT_EQ(allocated.largest.bytes(), 1024u);
  EXPECT_EQ(Only().reserved.different, 0u);
}

TEST_F(ReconciliationTest, MissedSegmentIsTheDifferenceOfTheReservedTotals) {
  script_.Totals(script_.Block(0x200000, 512), 512, 2 * kMiB);
  const Reconciliation found = Only();
  EXPECT_EQ(found.allocated.different, 0u);
  EXPECT_EQ(found.reserved.different, 1u);
  EXPECT_EQ(found.reserved.largest.bytes(), 2 * kMiB);
}

TEST_F(ReconciliationTest, PagesOfAnExpandableSegmentAreReservedFromMapToUnmap) {
  constexpr uint64_t kAt = uint64_t{1} << 40;
  script_.Reserve(kAt, uint64_t{1} << 36);
  script_.Create(1, 20 * kMiB);
  script_.Map(kAt, 20 * kMiB, 1);
  script_.Totals(script_.Block(kAt, 4 * kMiB), 4 * kMiB, 20 * kMiB);
  script_.Create(2, 20 * kMiB);
  script_.Map(kAt + 20 * kMiB, 20 * kMiB, 2);
  script_.Totals(script_.Block(kAt + 20 * kMiB, kMiB), 5 * kMiB, 40 * kMiB);
  script_.Totals(script_.FreeBlock(kAt + 20 * kMiB), 4 * kMiB, 40 * kMiB);
  script_.Unmap(kAt + 20 * kMiB, 20 * kMiB);
  script_.Release(2);
  script_.Totals(script_.Block(kAt + 4 * kMiB, kMiB), 5 * kMiB, 20 * kMiB);
  EXPECT_EQ(Only().reserved.compared, 4u);
  EXPECT_EQ(Only().reserved.different, 0u);
}

TEST_F(ReconciliationTest, DriverMemoryWithoutBlocksIsNotCounted) {
  script_.Alloc(0x900000, 64 * kMiB);
  script_.Alloc(0x200000, 2 * kMiB);
  script_.Totals(script_.Block(0x200000, 512), 512, 2 * kMiB);
  EXPECT_EQ(Only().reserved.different, 0u);
}

TEST_F(ReconciliationTest, EachDeviceIsComparedSeparately) {
  script_.Totals(script_.Block(0x200000, 512), 512, 0);
  format::Event& other = script_.Block(0x900000, 1024);
  other.device = 1;
  script_.Totals(other, 1024, 0);
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.reconciliations, SizeIs(2));
  EXPECT_EQ(trace.reconciliations[1].device, 1);
  EXPECT_EQ(trace.reconciliations[1].allocated.different, 0u);
}

TEST_F(ReconciliationTest, AllocatorWithoutTotalsIsNotCompared) {
  script_.Block(0x200000, 512);
  EXPECT_THAT(script_.Build().reconciliations, IsEmpty());
}

}  // namespace
}  // namespace gmt::analysis
