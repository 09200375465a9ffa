// The parts of a Trace other than memory: ranges, marks, samples, the order of side events, and the
// fields that few events carry.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "analysis/trace/trace_builder.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<SideEvent::Kind> KindsOf(const Trace& trace) {
  std::vector<SideEvent::Kind> kinds;
  for (const SideEvent& side_event : trace.side_events) kinds.push_back(side_event.kind);
  return kinds;
}

class TraceNotesTest : public ::testing::Test {
 protected:
  EventScript script_;
};

TEST_F(TraceNotesTest, RangesArePairedByTheirIdAndNotByNesting) {
  script_.Begin("a", 1, {"outer"});
  script_.Block(0x1000, 512);
  script_.Begin("b", 2);
  script_.End("a", 1);
  script_.Block(0x2000, 512);
  script_.End("b", 2);
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.ranges, SizeIs(2));
  EXPECT_EQ(trace.ranges[0].name, "a");
  EXPECT_EQ(trace.ranges[0].begin, 0u);
  EXPECT_EQ(trace.ranges[0].end, 1u);
  EXPECT_NE(trace.ranges[0].stack, 0u);
  EXPECT_EQ(trace.ranges[1].begin, 1u);
  EXPECT_EQ(trace.ranges[1].end, 2u);
  EXPECT_EQ(trace.ranges[1].end_t_ns, 6 * EventScript::kStep_ns);
}

TEST_F(TraceNotesTest, RangesWithoutIdsNestByThread) {
  const auto bare = [](format::Event& event, uint32_t thread) {
    event.present &= ~uint64_t{format::kHasRange};
    event.thread = thread;
  };
  bare(script_.Begin("outer", 0), 7);
  bare(script_.Begin("other thread", 0), 8);
  bare(script_.Begin("inner", 0), 7);
  bare(script_.End("", 0), 7);
  script_.Block(0x1000, 512);
  bare(script_.End("", 0), 7);
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.ranges, SizeIs(3));
  EXPECT_EQ(trace.ranges[0].end, 1u);
  EXPECT_EQ(trace.ranges[1].end, kNever);
  EXPECT_EQ(trace.ranges[2].end, 0u);
}

TEST_F(TraceNotesTest, RangeWithUnseenBeginIsFromBefore) {
  script_.Block(0x1000, 512);
  script_.End("a", 1);
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.ranges, SizeIs(1));
  EXPECT_EQ(trace.ranges[0].begin, 0u);
  EXPECT_EQ(trace.ranges[0].begin_t_ns, INT64_MIN);
  EXPECT_EQ(trace.ranges[0].end, 1u);
  EXPECT_THAT(KindsOf(trace), ElementsAre(SideEvent::kRangeEnd));
}

TEST_F(TraceNotesTest, MarksKeepNameAndIndex) {
  script_.Block(0x1000, 512);
  script_.Mark("step", 12);
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.marks, SizeIs(1));
  EXPECT_EQ(trace.marks[0].name, "step");
  EXPECT_EQ(trace.marks[0].index, 12u);
  EXPECT_EQ(trace.marks[0].step, 1u);
}

TEST_F(TraceNotesTest, SideEventsKeepTheirOrder) {
  script_.Create(1, 4096);
  script_.Map(0x10000, 4096, 1);
  script_.Mark("m", 0);
  script_.Unmap(0x10000, 4096);
  script_.Failed(99);
  script_.SnapshotTaken("");
  script_.SnapshotTaken("");
  script_.Sample(1, 2);
  const Trace trace = script_.Build();
  EXPECT_THAT(KindsOf(trace),
              ElementsAre(SideEvent::kMap, SideEvent::kMark, SideEvent::kUnmap, SideEvent::kFailed,
                          SideEvent::kSnapshot, SideEvent::kSnapshot, SideEvent::kSample));
  for (const SideEvent& side_event : trace.side_events) EXPECT_EQ(side_event.step, 1u);
  EXPECT_EQ(trace.side_events[5].index, 1u);
}

TEST_F(TraceNotesTest, SnapshotKnownFromItsLiveSetGetsItsPositionFromItsEvent) {
  script_.Block(0x1000, 512);
  TraceBuilder builder(script_.definitions());
  Snapshot snapshot;
  snapshot.set_name("oom-1");
  ASSERT_TRUE(builder.OnSnapshot(snapshot).ok());
  script_.SnapshotTaken("oom-1");
  ASSERT_TRUE(builder.OnEvents(script_.batch()).ok());
  const Trace trace = std::move(builder).Build();
  ASSERT_THAT(trace.snapshots, SizeIs(1));
  ASSERT_THAT(trace.side_events, SizeIs(1));
  EXPECT_EQ(trace.side_events[0].step, 1u);
}

TEST_F(TraceNotesTest, FailedAllocationKnowsTheDriversFreeMemory) {
  script_.Sample(700, 1000);
  script_.Sample(900, 1000);
  script_.Totals(script_.FailedBlock(4096, {"forward"}), 512, 1024);
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.failed, SizeIs(1));
  EXPECT_EQ(trace.failed[0].driver_free, 100u);
  EXPECT_EQ(trace.failed[0].total_allocated, 512u);
  EXPECT_EQ(trace.failed[0].total_reserved, 1024u);
}

TEST_F(TraceNotesTest, SampleMayHaveOnlyFreeBytes) {
  format::EventBatch batch;
  format::Event event;
  event.kind = SAMPLE;
  batch.events.push_back(event);
  batch.samples.emplace_back().set_free_bytes(300);
  TraceBuilder builder(script_.definitions());
  ASSERT_TRUE(builder.OnEvents(batch).ok());
  const Trace trace = std::move(builder).Build();
  ASSERT_THAT(trace.samples, SizeIs(1));
  EXPECT_EQ(trace.samples[0].free_bytes, 300u);
}

TEST_F(TraceNotesTest, FailedAllocationWithoutASampleDoesNotKnowFreeMemory) {
  script_.Failed(4096);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.failed[0].driver_free, std::nullopt);
  EXPECT_EQ(trace.failed[0].total_allocated, std::nullopt);
}

TEST_F(TraceNotesTest, RareFieldsAreKnownOnlyForTheirRows) {
  script_.Block(0x1000, 512);
  format::Event& block = script_.Block(0x2000, 512);
  block.present |= format::kHasRequested | format::kHasPool;
  block.requested = 500;
  block.pool = uint64_t{1} << 32;
  block.forward_stack = script_.Stack({"linear"});
  block.name = script_.builder().InternString("label");
  script_.Block(0x3000, 512);
  script_.FreeBlock(0x2000).stack = script_.Stack({"release"});
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.Requested(0), std::nullopt);
  EXPECT_EQ(trace.rows.Requested(1), 500u);
  EXPECT_EQ(trace.rows.Requested(2), std::nullopt);
  EXPECT_EQ(trace.rows.Pool(1), uint64_t{1} << 32);
  EXPECT_NE(trace.rows.forward_stack[1], 0u);
  EXPECT_EQ(script_.definitions().string(trace.rows.Name(1)), "label");
  EXPECT_EQ(trace.rows.Name(2), 0u);
  EXPECT_NE(trace.rows.FreeStack(1), 0u);
  EXPECT_EQ(trace.rows.FreeStack(0), 0u);
}

TEST_F(TraceNotesTest, DriverMemoryOfAFrameworksPoolIsASegmentWithoutBlocks) {
  format::Event& segment = script_.Alloc(0x200000, 4096);
  segment.present |= format::kHasPool;
  script_.Alloc(0x400000, 4096);
  const Trace trace = script_.Build();
  EXPECT_NE(trace.rows.flags[0] & kRowHoldsBlocks, 0);
  EXPECT_EQ(trace.rows.flags[1] & kRowHoldsBlocks, 0);
}

TEST_F(TraceNotesTest, StacksOfFreesBelongToTheirRowsInAnyOrder) {
  script_.Block(0x1000, 512);
  script_.Block(0x2000, 512);
  const uint32_t first = script_.Stack({"first"}), second = script_.Stack({"second"});
  script_.FreeBlock(0x2000).stack = second;
  script_.FreeBlock(0x1000).stack = first;
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.FreeStack(0), first);
  EXPECT_EQ(trace.rows.FreeStack(1), second);
}

TEST_F(TraceNotesTest, DriverCallsHaveDurationsAfterBlocksAreSeen) {
  script_.Alloc(0x200000, 4096).duration_ns = 50;
  script_.Block(0x200000, 512);
  script_.FreeBlock(0x200000);
  script_.Free(0x200000);
  script_.FreeDone(0x200000, 0).duration_ns = 70;
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.driver_calls, SizeIs(2));
  EXPECT_EQ(trace.driver_calls[0].duration_ns, 50u);
  EXPECT_EQ(trace.driver_calls[0].begin_ns(), EventScript::kStep_ns - 50);
  EXPECT_EQ(trace.driver_calls[1].kind, FREE);
  EXPECT_EQ(trace.driver_calls[1].size, 4096u);
  EXPECT_EQ(trace.driver_calls[1].end_ns(), 4 * EventScript::kStep_ns + 70);
}

TEST_F(TraceNotesTest, RefusedDriverCallIsDropped) {
  script_.Alloc(0x200000, 4096);
  script_.Block(0x200000, 512);
  script_.Free(0x200000);
  script_.FreeDone(0x200000, 1);
  EXPECT_THAT(script_.Build().driver_calls, SizeIs(1));
}

TEST_F(TraceNotesTest, CapturesArePairedByTheirStream) {
  script_.Graph("begin_capture", 7);
  script_.Block(0x1000, 512);
  script_.Graph("begin_capture", 8);
  script_.Block(0x2000, 512);
  script_.Graph("end_capture", 7);
  script_.Graph("end_capture", 9);
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.captures, SizeIs(2));
  EXPECT_EQ(trace.captures[0].stream, 7u);
  EXPECT_EQ(trace.captures[0].begin, 0u);
  EXPECT_EQ(trace.captures[0].end, 2u);
  EXPECT_TRUE(trace.captures[0].IsUnderWayAt(4 * EventScript::kStep_ns));
  EXPECT_FALSE(trace.captures[0].IsUnderWayAt(5 * EventScript::kStep_ns));
  EXPECT_EQ(trace.captures[1].begin, 1u);
  EXPECT_EQ(trace.captures[1].end, kNever);
}

TEST_F(TraceNotesTest, InvalidatedCaptureEndsAndRefusedOneDoesNotBegin) {
  const auto fail = [](format::Event& event, uint32_t result) {
    event.present |= format::kHasResult;
    event.result = result;
  };
  fail(script_.Graph("begin_capture", 6), 1);
  script_.Graph("begin_capture", 7);
  script_.Block(0x1000, 512);
  fail(script_.Graph("end_capture", 7), 901);  // cudaErrorStreamCaptureInvalidated
  script_.Block(0x2000, 512);
  const Trace trace = script_.Build();
  ASSERT_THAT(trace.captures, SizeIs(1));
  EXPECT_EQ(trace.captures[0].stream, 7u);
  EXPECT_EQ(trace.captures[0].end, 1u);
}

TEST_F(TraceNotesTest, WithoutBlocksNoDriverCallsAreKept) {
  script_.Alloc(0x200000, 4096);
  EXPECT_THAT(script_.Build().driver_calls, IsEmpty());
}

}  // namespace
}  // namespace gmt::analysis
