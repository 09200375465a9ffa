#include "analysis/trace/stream_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kAllocator = 0xa110c, kAutograd = 0xa9;  // call sites
constexpr uint64_t kBlock = 0x1000, kOther = 0x9000;

class StreamWaitsTest : public ::testing::Test {
 protected:
  static bool Awaited(const Trace& trace, RowId row) {
    return (trace.rows.flags[row] & kRowAwaited) != 0;
  }
  static bool MayAwait(const Trace& trace, RowId row) {
    return (trace.rows.flags[row] & kRowMayAwait) != 0;
  }
  EventScript script_;
};

TEST_F(StreamWaitsTest, FreeWithoutEventsIsCompletedAtOnce) {
  script_.Block(kBlock, 512);
  script_.FreeBlock(kBlock);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.Completed(0), trace.rows.death[0]);
  EXPECT_FALSE(Awaited(trace, 0));
  EXPECT_FALSE(MayAwait(trace, 0));
  EXPECT_THAT(trace.completions, IsEmpty());
}

TEST_F(StreamWaitsTest, FreeIsCompletedWhenItsLastEventWasSeenDone) {
  script_.Block(kBlock, 512);
  script_.RecordEvent(1, kAllocator);
  script_.RecordEvent(2, kAllocator);
  script_.FreeBlock(kBlock);
  script_.EventDone(2);
  script_.Block(kOther, 512);
  script_.EventDone(1);
  script_.Block(kOther + 0x200, 512);
  const Trace trace = script_.Build();
  EXPECT_TRUE(Awaited(trace, 0));
  EXPECT_EQ(trace.rows.death[0], 2u);
  EXPECT_EQ(trace.rows.Completed(0), 3u);
  EXPECT_TRUE(trace.rows.PendingAfter(0, 2));
  EXPECT_FALSE(trace.rows.PendingAfter(0, 3));
  ASSERT_THAT(trace.completions, SizeIs(1));
  EXPECT_EQ(trace.completions[0].t_ns, 7 * EventScript::kStep_ns);
  ASSERT_THAT(trace.side_events, SizeIs(1));
  EXPECT_EQ(trace.side_events[0].kind, SideEvent::kCompleted);
  EXPECT_EQ(trace.side_events[0].step, 3u);
}

TEST_F(StreamWaitsTest, EventThatWasNeverSeenDoneLeavesItsBlockPending) {
  script_.Block(kBlock, 512);
  script_.RecordEvent(1, kAllocator);
  script_.FreeBlock(kBlock);
  script_.Block(kOther, 512);
  script_.RecordEvent(2, kAllocator);
  script_.FreeBlock(kOther);
  script_.EventDone(2);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.Completed(0), kNever);
  EXPECT_TRUE(trace.rows.PendingAfter(0, trace.last_step()));
}

TEST_F(StreamWaitsTest, EventsOfAnotherThreadBelongToItsOwnFrees) {
  script_.Block(kBlock, 512);
  script_.Block(kOther, 512);
  script_.RecordEvent(1, kAllocator).thread = 7;
  script_.FreeBlock(kOther).thread = 8;
  script_.FreeBlock(kBlock).thread = 7;
  script_.EventDone(1);
  const Trace trace = script_.Build();
  EXPECT_TRUE(Awaited(trace, 0));
  EXPECT_FALSE(Awaited(trace, 1));
}

TEST_F(StreamWaitsTest, EventsBeforeAnotherBlockEventBelongToNoFree) {
  script_.Block(kBlock, 512);
  script_.RecordEvent(1, kAllocator);
  script_.Block(kOther, 512);
  script_.FreeBlock(kBlock);
  script_.EventDone(1);
  EXPECT_FALSE(Awaited(script_.Build(), 0));
}

TEST_F(StreamWaitsTest, EventOnTheBlocksOwnStreamIsTheProgramsOwn) {
  const auto on_stream = [](format::Event& event, uint64_t stream) {
    event.present |= format::kHasStream;
    event.stream = stream;
  };
  on_stream(script_.Block(kBlock, 512), 5);
  on_stream(script_.Block(kOther, 512), 5);
  on_stream(script_.RecordEvent(1, kAllocator), 5);
  script_.FreeBlock(kBlock);
  on_stream(script_.RecordEvent(2, kAllocator), 6);
  script_.FreeBlock(kOther);
  script_.EventDone(1);
  script_.EventDone(2);
  const Trace trace = script_.Build();
  EXPECT_FALSE(Awaited(trace, 0));
  EXPECT_TRUE(Awaited(trace, 1));
}

TEST_F(StreamWaitsTest, SiteWhoseEventsAreNeverQueriedIsNotTheAllocators) {
  script_.Block(kBlock, 512);
  script_.Block(kOther, 512);
  script_.RecordEvent(1, kAutograd);
  script_.FreeBlock(kBlock);
  script_.RecordEvent(2, kAllocator);
  script_.FreeBlock(kOther);
  script_.EventDone(2);
  const Trace trace = script_.Build();
  EXPECT_FALSE(Awaited(trace, 0));
  EXPECT_FALSE(MayAwait(trace, 0));
  EXPECT_EQ(trace.rows.Completed(0), trace.rows.death[0]);
  EXPECT_TRUE(Awaited(trace, 1));
}

TEST_F(StreamWaitsTest, EventsOfAutogradDoNotDelayAFreeThatWaitsForOthers) {
  script_.Block(kBlock, 512);
  script_.RecordEvent(1, kAutograd);
  script_.RecordEvent(2, kAllocator);
  script_.FreeBlock(kBlock);
  script_.EventDone(2);
  const Trace trace = script_.Build();
  ASSERT_EQ(trace.rows.count(), 1u);
  EXPECT_EQ(trace.rows.Completed(0), trace.rows.death[0]);
  EXPECT_TRUE(Awaited(trace, 0));
  EXPECT_THAT(trace.completions, SizeIs(1));
}

TEST_F(StreamWaitsTest, WithoutAConfirmedSiteItIsUndetermined) {
  script_.Block(kBlock, 512);
  script_.RecordEvent(1, kAllocator);
  script_.FreeBlock(kBlock);
  const Trace trace = script_.Build();
  EXPECT_TRUE(MayAwait(trace, 0));
  EXPECT_FALSE(Awaited(trace, 0));
  EXPECT_EQ(trace.rows.Completed(0), trace.rows.death[0]);
}

TEST_F(StreamWaitsTest, WaitOfTheProgramConfirmsNoSite) {
  script_.Block(kBlock, 512);
  script_.RecordEvent(1, kAutograd);
  script_.FreeBlock(kBlock);
  script_.EventDone(1).flags = 0;
  EXPECT_TRUE(MayAwait(script_.Build(), 0));
}

TEST_F(StreamWaitsTest, EventRecordedAgainWasDone) {
  script_.Block(kBlock, 512);
  script_.Block(kOther, 512);
  script_.RecordEvent(1, kAllocator);
  script_.FreeBlock(kBlock);
  script_.RecordEvent(1, kAllocator);
  script_.FreeBlock(kOther);
  script_.EventDone(1);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.Completed(0), 3u);
  EXPECT_EQ(trace.rows.Completed(1), 4u);
}

TEST_F(StreamWaitsTest, ReusedAddressWasWaitedFor) {
  script_.Block(kBlock, 0x400);
  script_.Block(kOther, 512);
  script_.RecordEvent(1, kAllocator);
  script_.FreeBlock(kBlock);
  script_.RecordEvent(2, kAllocator);
  script_.FreeBlock(kOther);
  script_.EventDone(2);
  script_.Block(kBlock + 0x200, 512);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.Completed(0), 4u);
  ASSERT_THAT(trace.completions, SizeIs(2));
  EXPECT_EQ(trace.completions[1].row, 0u);
}

TEST_F(StreamWaitsTest, CompletionsAreInOrderAmongTheSideEvents) {
  script_.Block(kBlock, 512);
  script_.RecordEvent(1, kAllocator);
  script_.FreeBlock(kBlock);
  script_.Mark("before", 0);
  script_.EventDone(1);
  script_.Mark("after", 1);
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.side_events, SizeIs(3));
  EXPECT_EQ(trace.side_events[0].kind, SideEvent::kMark);
  EXPECT_EQ(trace.side_events[1].kind, SideEvent::kCompleted);
  EXPECT_EQ(trace.side_events[2].kind, SideEvent::kMark);
}

TEST_F(StreamWaitsTest, FreeAfterManyEventsStillFindsItsOwn) {
  script_.Block(kBlock, 512);
  for (uint64_t event = 100; event < 5000; ++event) script_.RecordEvent(event, kAutograd);
  script_.RecordEvent(1, kAllocator);
  script_.FreeBlock(kBlock);
  script_.EventDone(1);
  EXPECT_TRUE(Awaited(script_.Build(), 0));
}

// ---- Completions that the recording reports

TEST_F(StreamWaitsTest, ReportedCompletionAfterItsFreeIsImmediate) {
  script_.Block(kBlock, 512);
  script_.FreeBlock(kBlock);
  script_.FreeBlockDone(kBlock);
  const Trace trace = script_.Build();
  EXPECT_FALSE(Awaited(trace, 0));
  EXPECT_EQ(trace.rows.Completed(0), trace.rows.death[0]);
  EXPECT_THAT(trace.completions, IsEmpty());
}

// PyTorch completes a waiting block's free while it allocates the next one, before reporting that
// one.
TEST_F(StreamWaitsTest, ReportedCompletionAfterItsFreeWithAnotherStackIsAWait) {
  script_.Block(kBlock, 512);
  script_.FreeBlock(kBlock).stack = script_.Stack({"free"});
  script_.FreeBlockDone(kBlock).stack = script_.Stack({"malloc"});
  const Trace trace = script_.Build();
  EXPECT_TRUE(Awaited(trace, 0));
  ASSERT_THAT(trace.completions, SizeIs(1));
  EXPECT_NE(trace.completions[0].stack, trace.rows.FreeStack(0));
}

TEST_F(StreamWaitsTest, ReportedCompletionAfterOtherEventsIsAWait) {
  script_.Block(kBlock, 512);
  script_.FreeBlock(kBlock);
  script_.Block(kOther, 512);
  script_.FreeBlockDone(kBlock);
  const Trace trace = script_.Build();
  EXPECT_TRUE(Awaited(trace, 0));
  EXPECT_EQ(trace.rows.death[0], 2u);
  EXPECT_EQ(trace.rows.Completed(0), 3u);
  EXPECT_THAT(trace.completions, SizeIs(1));
}

TEST_F(StreamWaitsTest, EventsOfAnotherDeviceBetweenFreeAndCompletionAreNotAWait) {
  script_.Block(kOther, 512);
  script_.FreeBlock(kOther);
  script_.FreeBlockDone(kOther);
  script_.Block(kBlock, 512);
  script_.FreeBlock(kBlock);
  script_.Block(kOther, 512).device = 1;
  script_.FreeBlockDone(kBlock);
  EXPECT_FALSE(Awaited(script_.Build(), 1));
}

TEST_F(StreamWaitsTest, FreeWithoutReportedCompletionIsPendingAtTheEnd) {
  script_.Block(kOther, 512);
  script_.FreeBlock(kOther);
  script_.FreeBlockDone(kOther);
  script_.Block(kBlock, 512);
  script_.FreeBlock(kBlock);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.Completed(1), kNever);
  EXPECT_TRUE(Awaited(trace, 1));
}

TEST_F(StreamWaitsTest, FreesBeforeTheFirstReportedCompletionAlsoWait) {
  script_.Block(kBlock, 512);
  script_.Block(kOther, 512);
  script_.FreeBlock(kBlock);
  script_.FreeBlock(kOther);
  script_.FreeBlockDone(kOther);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.Completed(0), kNever);
  EXPECT_FALSE(Awaited(trace, 1));
}

TEST_F(StreamWaitsTest, FreeOfABlockFromBeforeCanWait) {
  script_.FreeBlock(kBlock).size = 512;
  script_.Block(kOther, 512);
  script_.FreeBlockDone(kBlock);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.birth[0], 0u);
  EXPECT_TRUE(Awaited(trace, 0));
  EXPECT_EQ(trace.rows.Completed(0), trace.rows.death[0] + 1);
}

}  // namespace
}  // namespace gmt::analysis
