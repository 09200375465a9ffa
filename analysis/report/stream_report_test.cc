#include "analysis/report/stream_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/report.h"
#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using testing::DoubleEq;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kA = 0xa000, kB = 0xb000, kPlace = 0x100000, kSegment = 0x200000;
constexpr int64_t kStep = EventScript::kStep_ns;

class StreamReportTest : public testing::Test {
 protected:
  const StreamReport& Make(const ReportOptions& options = {}) {
    const Trace trace = script_.Build();
    report_ = MakeReport(Examination(trace, script_.definitions()), options).value();
    return report_.streams;
  }
  format::Event& Block(uint64_t address, uint64_t size, uint64_t stream,
                       const EventScript::Functions& stack = {}) {
    format::Event& block = script_.Block(address, size, stack);
    block.present |= format::kHasStream;
    block.stream = stream;
    return block;
  }

  EventScript script_;
  Report report_;
};

TEST_F(StreamReportTest, StreamOrderedMemoryIsHeldUntilItsStreamIsDone) {
  script_.AllocAsync(kPlace, 100, kA, {"make"});
  script_.FreeAsync(kPlace, kA);  // 2 ms
  script_.Mark("later", 0);
  script_.SyncStream(kA);  // 4 ms
  const StreamReport& report = Make();
  ASSERT_THAT(report.heaps, SizeIs(1));
  EXPECT_EQ(report.heaps[0].held.frees, 1u);
  EXPECT_EQ(report.heaps[0].held.bytes, 100u);
  EXPECT_THAT(report.heaps[0].held.byte_ns, DoubleEq(100.0 * 2 * kStep));
  EXPECT_EQ(report.heaps[0].held.longest_ns, static_cast<uint64_t>(2 * kStep));
  ASSERT_THAT(report.rows, SizeIs(1));
  EXPECT_EQ(report.rows[0].stream, kA);
  EXPECT_EQ(report.rows[0].frames[0].function, "make");
}

TEST_F(StreamReportTest, FreeThatIsNeverKnownToBeDoneIsCountedSeparately) {
  script_.AllocAsync(kPlace, 100, kA);
  script_.FreeAsync(kPlace, kA);
  const StreamReport& report = Make();
  ASSERT_THAT(report.heaps, SizeIs(1));
  EXPECT_EQ(report.heaps[0].held.frees, 0u);
  EXPECT_EQ(report.heaps[0].unknown_frees, 1u);
  EXPECT_EQ(report.heaps[0].unknown_bytes, 100u);
  EXPECT_THAT(report.rows, IsEmpty());
}

TEST_F(StreamReportTest, BlockIsHeldUntilItsAllocatorSawTheOtherStreamsDone) {
  Block(kPlace, 512, kA);
  script_.RecordEvent(1, 0x400).stream = kB;
  script_.FreeBlock(kPlace);  // 3 ms
  script_.EventDone(1);
  Make();
  ASSERT_THAT(report_.streams.heaps, SizeIs(1));
  EXPECT_EQ(report_.streams.heaps[0].heap, "pytorch");
  EXPECT_THAT(report_.streams.heaps[0].held.byte_ns, DoubleEq(512.0 * kStep));
}

TEST_F(StreamReportTest, BlockThatWaitsForNoOtherStreamIsNotHeld) {
  Block(kPlace, 512, kA);
  script_.FreeBlock(kPlace);
  script_.SyncStream(kA);
  EXPECT_THAT(Make().heaps, IsEmpty());
}

TEST_F(StreamReportTest, PiecesHeldToTheEndAreCounted) {
  Block(kPlace, 512, kA);
  Block(kPlace + 512, 512, kA);
  script_.RecordEvent(1, 0x400).stream = kB;
  script_.FreeBlock(kPlace);
  script_.EventDone(1);
  script_.RecordEvent(2, 0x400).stream = kB;
  script_.FreeBlock(kPlace + 512);
  script_.Mark("end", 0);
  const StreamReport& report = Make();
  ASSERT_THAT(report.heaps, SizeIs(1));
  EXPECT_EQ(report.heaps[0].held.frees, 2u);
  EXPECT_EQ(report.heaps[0].held.still, 1u);
}

TEST_F(StreamReportTest, CostOfPendingWorkIsBetweenLiveAndOccupied) {
  script_.AllocAsync(kPlace, 100, kA);
  script_.FreeAsync(kPlace, kA);
  script_.AllocAsync(kPlace + 4096, 100, kA);
  script_.FreeAsync(kPlace + 4096, kA);
  script_.SyncStream(kA);
  script_.AllocAsync(kPlace, 150, kA);
  const StreamReport& report = Make();
  ASSERT_THAT(report.heaps, SizeIs(1));
  EXPECT_EQ(report.heaps[0].peak_live_bytes, 150u);
  EXPECT_EQ(report.heaps[0].peak_occupied_bytes, 200u);
  EXPECT_EQ(report.heaps[0].peak_bytes, 200u);
  EXPECT_EQ(report.heaps[0].peak_t_ns, 4 * kStep);
}

TEST_F(StreamReportTest, FreesOutsideTheWindowDoNotCount) {
  script_.AllocAsync(kPlace, 100, kA);
  script_.FreeAsync(kPlace, kA);
  script_.SyncStream(kA);
  ReportOptions options;
  options.window.from_ns = 3 * kStep;
  EXPECT_THAT(Make(options).heaps, IsEmpty());
}

TEST_F(StreamReportTest, RowsAreByStackAndStreamMostHeldFirst) {
  for (int i = 0; i < 2; ++i) {
    script_.AllocAsync(kPlace, 100, kA, {"small"});
    script_.AllocAsync(kPlace + 4096, 1000, kB, {"big"});
    script_.FreeAsync(kPlace, kA);
    script_.FreeAsync(kPlace + 4096, kB);
    script_.SyncDevice();
  }
  const StreamReport& report = Make();
  ASSERT_THAT(report.rows, SizeIs(2));
  EXPECT_EQ(report.rows[0].frames[0].function, "big");
  EXPECT_EQ(report.rows[0].held.frees, 2u);
  EXPECT_EQ(report.rows[1].stream, kA);
}

// ---- Free memory that only one stream may use

TEST_F(StreamReportTest, FreeBytesOfASegmentBelongToTheStreamOfItsBlocks) {
  script_.Alloc(kSegment, 2 * kMiB);
  Block(kSegment, kMiB, kA);
  script_.Alloc(2 * kSegment, 4 * kMiB);
  Block(2 * kSegment, kMiB, kB);
  script_.FreeBlock(2 * kSegment);
  ReportOptions options;
  options.at.kind = At::kEnd;
  const StreamReport& report = Make(options);
  ASSERT_THAT(report.memory, SizeIs(2));
  EXPECT_EQ(report.memory[0].stream, kB);
  EXPECT_EQ(report.memory[0].reserved, 4 * kMiB);
  EXPECT_EQ(report.memory[0].free(), 4 * kMiB);
  EXPECT_EQ(report.memory[1].stream, kA);
  EXPECT_EQ(report.memory[1].free(), kMiB);
}

TEST_F(StreamReportTest, BlockOfAnEarlierSegmentAtTheAddressIsIgnored) {
  script_.Alloc(kSegment, 2 * kMiB);
  Block(kSegment, kMiB, kA);
  script_.FreeBlock(kSegment);
  script_.Free(kSegment);
  script_.Alloc(kSegment, 2 * kMiB);
  Block(kSegment, kMiB, kB);
  ReportOptions options;
  options.at.kind = At::kEnd;
  const StreamReport& report = Make(options);
  ASSERT_THAT(report.memory, SizeIs(1));
  EXPECT_EQ(report.memory[0].stream, kB);
}

// ---- Streams and host time

TEST_F(StreamReportTest, RowsByStreamHaveNameAndPriority) {
  script_.NewStream(kA, false, -2);
  script_.NameStream(kA, "copy");
  Block(kPlace, 512, kA);
  ReportOptions options;
  options.by = GroupBy::kStream;
  Make(options);
  ASSERT_THAT(report_.rows, SizeIs(1));
  EXPECT_EQ(report_.rows[0].label, "stream 0xa000 \"copy\", priority -2");
  EXPECT_EQ(report_.rows[0].id, "stream/0xa000");
}

TEST_F(StreamReportTest, HandleIsNamedAfterItsStreamAtThatTime) {
  script_.NewStream(kA);
  script_.NameStream(kA, "first");
  Block(kPlace, 512, kA);
  script_.EndStream(kA);
  script_.NewStream(kA);
  script_.NameStream(kA, "second");
  ReportOptions options;
  options.by = GroupBy::kStream;
  Make(options);  // at the peak, 3 ms
  EXPECT_EQ(report_.rows[0].label, "stream 0xa000 \"first\"");
}

TEST_F(StreamReportTest, HostCostsAreSortedByTime) {
  script_.Api(script_.Took(script_.SyncStream(kA, {"little"}), 100), "cudaStreamSynchronize");
  script_.Api(script_.Took(script_.SyncStream(kA, {"much"}), 900), "cudaStreamSynchronize");
  script_.Alloc(kPlace, 512);
  const StreamReport& report = Make();
  ASSERT_THAT(report.host_costs, SizeIs(2));
  EXPECT_EQ(report.host_costs[0].frames[0].function, "much");
  EXPECT_EQ(report.host_costs[0].api, "cudaStreamSynchronize");
}

}  // namespace
}  // namespace gmt::analysis
