#include "analysis/trace/before_attach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/examination/replay.h"
#include "analysis/testing/event_script.h"
#include "format/live_columns.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class BeforeAttachTest : public ::testing::Test {
 protected:
  void Report(format::Event& event) { script_.Api(event, kBeforeAttachApi); }
  void FreeSized(uint64_t address, uint64_t size) {
    format::Event& event = script_.FreeBlock(address);
    event.present |= format::kHasSize;
    event.size = size;
  }

  EventScript script_;
};

TEST_F(BeforeAttachTest, ReportedMemoryWasHeldFromTheBeginning) {
  script_.Block(0x100000, kMiB, {"forward", "train"});
  Report(script_.Block(0x900000, 3 * kMiB));
  const Trace trace = script_.Build();
  ASSERT_EQ(trace.rows.count(), 2u);
  EXPECT_EQ(trace.rows.birth[1], 0u);
  const Replay replay(trace);
  EXPECT_EQ(replay.devices().at(0).bytes.peak, 4 * kMiB);
}

TEST_F(BeforeAttachTest, SegmentsAreNotCountedInAdditionToTheirBlocks) {
  Report(script_.Alloc(0x40000000, 20 * kMiB));
  Report(script_.Block(0x40000000, kMiB));
  Report(script_.Alloc(0x80000000, 5 * kMiB));
  const std::vector<HeldBefore> before = FindHeldBefore(script_.Build());
  ASSERT_THAT(before, SizeIs(2));
  EXPECT_EQ(before[0].heap, "driver");
  EXPECT_EQ(before[0].bytes, 5 * kMiB);
  EXPECT_EQ(before[1].heap, "pytorch");
  EXPECT_EQ(before[1].bytes, kMiB);
  EXPECT_EQ(before[1].blocks, 1u);
}

TEST_F(BeforeAttachTest, FreesAreOfReportedOrUnreportedMemory) {
  Report(script_.Block(0x100000, kMiB));
  Report(script_.Block(0x200000, kMiB));
  script_.FreeBlock(0x100000);
  FreeSized(0x900000, 7 * kMiB);
  const std::vector<HeldBefore> before = FindHeldBefore(script_.Build());
  ASSERT_THAT(before, SizeIs(1));
  EXPECT_EQ(before[0].freed_blocks, 1u);
  EXPECT_EQ(before[0].freed_bytes, kMiB);
  EXPECT_EQ(before[0].unknown_freed_blocks, 1u);
  EXPECT_EQ(before[0].unknown_freed_bytes, 7 * kMiB);
}

TEST_F(BeforeAttachTest, TotalsAreComparedAfterTheReport) {
  EventScript::Totals(script_.Block(0x200000, kMiB, {"forward", "train"}), 4 * kMiB, 0);
  format::Event& reported = script_.Block(0x900000, 3 * kMiB);
  Report(reported);
  EventScript::Totals(reported, 0, 0);  // reports at attach have no totals
  EventScript::Totals(script_.Block(0xc00000, kMiB, {"forward", "train"}), 5 * kMiB, 0);
  const Trace trace = script_.Build();
  ASSERT_EQ(trace.reconciliations.size(), 1u);
  EXPECT_EQ(trace.reconciliations[0].allocated.compared, 1u);
  EXPECT_EQ(trace.reconciliations[0].allocated.different, 0u);
}

// Births in a part's snapshot are not memory from before an attach.
TEST_F(BeforeAttachTest, ALaterPartOfARecordingHasNone) {
  script_.Block(0x100000, kMiB, {"forward", "train"}).present |= format::kHasTime;
  Snapshot part;
  part.set_reason("part");
  *part.mutable_live() = format::EncodeLive(script_.events());
  TraceBuilder builder(script_.definitions());
  ASSERT_TRUE(builder.OnSnapshot(part).ok());
  const Trace trace = std::move(builder).Build();
  ASSERT_EQ(trace.rows.count(), 1u);
  EXPECT_TRUE(trace.rows.BornBefore(0).has_value());
  EXPECT_FALSE(WasAttached(trace));
  EXPECT_THAT(FindHeldBefore(trace), IsEmpty());
}

TEST_F(BeforeAttachTest, ARecordingFromTheBeginningHasNone) {
  script_.Block(0x100000, kMiB, {"forward", "train"});
  FreeSized(0x900000, 7 * kMiB);
  EXPECT_THAT(FindHeldBefore(script_.Build()), IsEmpty());
}

TEST_F(BeforeAttachTest, BlocksOfTheSameSizesMayComeFromTheSameStack) {
  Report(script_.Block(0x100000, 2 * kMiB));
  Report(script_.Block(0x400000, 2 * kMiB));
  Report(script_.Block(0x800000, 3 * kMiB));
  Report(script_.Block(0xc00000, 2 * kMiB));
  script_.FreeBlock(0xc00000);
  const uint32_t stack = script_.Block(0x1000000, 2 * kMiB, {"append", "train"}).stack;
  const LikeBefore like = FindLikeBefore(script_.Build(), {stack});
  EXPECT_EQ(like.blocks, 2u);
  EXPECT_EQ(like.bytes, 4 * kMiB);
}

}  // namespace
}  // namespace gmt::analysis
