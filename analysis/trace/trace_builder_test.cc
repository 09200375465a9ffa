#include "analysis/trace/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/examination/replay.h"
#include "analysis/testing/event_script.h"
#include "format/live_columns.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TraceBuilderTest : public ::testing::Test {
 protected:
  // Returns the bytes held on a device and heap after the last event.
  uint64_t Live(const std::string& heap, int32_t device = 0) {
    const Trace trace = script_.Build();
    uint64_t bytes = 0;
    for (RowId row : HeldAfter(trace, trace.last_step())) {
      if (trace.heaps[trace.rows.heap[row]] == heap && trace.rows.device[row] == device) {
        bytes += trace.rows.size[row];
      }
    }
    return bytes;
  }

  EventScript script_;
};

TEST_F(TraceBuilderTest, AllocationIsHeldFromItsStepUntilItsFree) {
  script_.Alloc(0x1000, 512);
  script_.Alloc(0x2000, 256);
  script_.Free(0x1000);
  const Trace trace = script_.Build();
  EXPECT_THAT(trace.rows.birth, ElementsAre(1, 2));
  EXPECT_THAT(trace.rows.death, ElementsAre(3, kNever));
  EXPECT_THAT(HeldAfter(trace, 2), ElementsAre(0, 1));
  EXPECT_THAT(HeldAfter(trace, 3), ElementsAre(1));
}

TEST_F(TraceBuilderTest, FreeThatTheDriverRefusedDidNotHappen) {
  script_.Alloc(0x1000, 512);
  script_.Free(0x1000);
  script_.FreeDone(0x1000, 1);
  EXPECT_EQ(Live("driver"), 512u);
  script_.Free(0x1000);
  script_.FreeDone(0x1000, 0);
  EXPECT_EQ(Live("driver"), 0u);
}

TEST_F(TraceBuilderTest, RefusedFreeLeavesNoDipInThePast) {
  script_.Alloc(0x1000, 512);
  script_.Free(0x1000);
  script_.Alloc(0x2000, 512);
  script_.FreeDone(0x1000, 1);
  const Trace trace = script_.Build();
  EXPECT_EQ(Replay(trace).devices().at(0).bytes.peak, 1024u);
}

TEST_F(TraceBuilderTest, FreeOfUnknownMemoryMeansItWasHeldFromBefore) {
  script_.Alloc(0x1000, 512);
  script_.Free(0x9000, 4096);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.unknowns.rows_from_before, 1u);
  EXPECT_EQ(trace.rows.birth[1], 0u);
  EXPECT_EQ(Replay(trace).devices().at(0).bytes.peak, 4096u + 512u);
  EXPECT_EQ(Live("driver"), 512u);
}

TEST_F(TraceBuilderTest, AfterAGapAnUnknownFreeProvesNothing) {
  script_.Gap(100);
  script_.Free(0x9000, 4096);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.count(), 0u);
  EXPECT_EQ(trace.unknowns.frees_unmatched, 1u);
  EXPECT_EQ(trace.unknowns.events_missing, 100u);
}

TEST_F(TraceBuilderTest, FreeOfNullIsIgnored) {
  script_.Free(0, 0);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.count(), 0u);
  EXPECT_EQ(trace.unknowns.frees_unmatched, 0u);
}

TEST_F(TraceBuilderTest, AllocationAtAHeldAddressEndsTheOldOneAndIsCounted) {
  script_.Alloc(0x1000, 512);
  script_.Alloc(0x1000, 256);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.unknowns.frees_lost, 1u);
  EXPECT_EQ(trace.rows.death[0], 2u);
  EXPECT_EQ(trace.rows.birth[1], 3u);
  EXPECT_EQ(Live("driver"), 256u);
}

TEST_F(TraceBuilderTest, PhysicalMemoryCountsFromCreateUntilReleasedAndUnmapped) {
  script_.Create(7, 2 * kMiB);
  EXPECT_EQ(Live("driver"), 2 * kMiB) << "created, not yet mapped";
  script_.Map(0x100000000, 2 * kMiB, 7);
  EXPECT_EQ(Live("driver"), 2 * kMiB) << "a mapping is an address, not bytes";
  script_.Release(7);
  EXPECT_EQ(Live("driver"), 2 * kMiB) << "still mapped";
  script_.Unmap(0x100000000, 2 * kMiB);
  EXPECT_EQ(Live("driver"), 0u);
}

TEST_F(TraceBuilderTest, UnmappedPhysicalMemoryIsHeldUntilItsRelease) {
  script_.Create(7, 2 * kMiB);
  script_.Map(0x100000000, 2 * kMiB, 7);
  script_.Unmap(0x100000000, 2 * kMiB);
  EXPECT_EQ(Live("driver"), 2 * kMiB);
  script_.Release(7);
  EXPECT_EQ(Live("driver"), 0u);
}

TEST_F(TraceBuilderTest, OneUnmapEndsAllMappingsOfItsRange) {
  for (uint64_t i = 0; i < 3; ++i) {
    script_.Create(7 + i, 2 * kMiB);
    script_.Map(0x100000000 + i * 2 * kMiB, 2 * kMiB, 7 + i);
    script_.Release(7 + i);
  }
  script_.Unmap(0x100000000, 4 * kMiB);
  EXPECT_EQ(Live("driver"), 2 * kMiB);
}

TEST_F(TraceBuilderTest, MemoryOfAnotherProcessOrApiIsNotCountedHere) {
  script_.Map(0x100000000, 2 * kMiB, 7).memory = EXTERNAL;
  script_.Free(0x100000000).memory = EXTERNAL;
  script_.Map(0x100000000, 2 * kMiB, 7).memory = GRAPHICS;
  script_.Unmap(0x100000000, 2 * kMiB).memory = GRAPHICS;
  const Trace trace = script_.Build();
  EXPECT_TRUE(trace.mappings.empty());
  EXPECT_EQ(trace.rows.count(), 0u);
  EXPECT_EQ(trace.unknowns.frees_lost + trace.unknowns.frees_unmatched, 0u);
}

TEST_F(TraceBuilderTest, ReusedHandleOfMappedMemoryIsAnotherMemory) {
  script_.Create(7, 2 * kMiB);
  script_.Map(0x100000000, 2 * kMiB, 7);
  script_.Release(7);
  script_.Create(7, 4 * kMiB);
  EXPECT_EQ(Live("driver"), 6 * kMiB);
  script_.Unmap(0x100000000, 2 * kMiB);
  EXPECT_EQ(Live("driver"), 4 * kMiB);
}

TEST_F(TraceBuilderTest, RefusedReleaseOfMappedMemoryIsUndone) {
  script_.Create(7, 2 * kMiB);
  script_.Map(0x100000000, 2 * kMiB, 7);
  script_.Release(7);
  script_.FreeDone(7, 1).memory = VMM;
  script_.Unmap(0x100000000, 2 * kMiB);
  EXPECT_EQ(Live("driver"), 2 * kMiB);
}

TEST_F(TraceBuilderTest, HostMemoryIsNotOnADevice) {
  script_.Pinned(0x5000, 4096);
  EXPECT_EQ(Live("host", kHostDevice), 4096u);
  EXPECT_EQ(Live("driver"), 0u);
  script_.FreePinned(0x5000);
  EXPECT_EQ(Live("host", kHostDevice), 0u);
}

TEST_F(TraceBuilderTest, FreeWithoutKindOfMemoryFindsIt) {
  script_.Pinned(0x5000, 4096);
  format::Event& free = script_.Free(0x5000);
  free.memory = MEMORY_UNSPECIFIED;
  EXPECT_EQ(Live("host", kHostDevice), 0u);
}

TEST_F(TraceBuilderTest, BlockAndSegmentMayShareAnAddress) {
  script_.Alloc(0x1000, 2 * kMiB);
  script_.Block(0x1000, 512);
  script_.FreeBlock(0x1000);
  EXPECT_EQ(Live("driver"), 2 * kMiB);
  EXPECT_EQ(Live("pytorch"), 0u);
  EXPECT_EQ(script_.Build().unknowns.frees_lost, 0u);
}

TEST_F(TraceBuilderTest, SegmentsAreRecognisedByTheirBlocks) {
  script_.Alloc(0x1000, 0x1000);
  script_.Alloc(0x8000, 0x1000);
  script_.Block(0x8800, 0x800);
  script_.Block(0x9000, 0x10);
  const Trace trace = script_.Build();
  EXPECT_FALSE(trace.rows.flags[0] & kRowHoldsBlocks);
  EXPECT_TRUE(trace.rows.flags[1] & kRowHoldsBlocks);
  EXPECT_FALSE(trace.rows.flags[2] & kRowUnbacked);
  EXPECT_TRUE(trace.rows.flags[3] & kRowUnbacked);
}

TEST_F(TraceBuilderTest, BlockMayLieInSeveralMappings) {
  for (uint64_t i = 0; i < 3; ++i) {
    script_.Create(7 + i, 2 * kMiB);
    script_.Map(0x100000000 + i * 2 * kMiB, 2 * kMiB, 7 + i);
  }
  script_.Block(0x100000000 + kMiB, 2 * kMiB);
  const Trace trace = script_.Build();
  EXPECT_TRUE(trace.rows.flags[0] & kRowHoldsBlocks);
  EXPECT_TRUE(trace.rows.flags[1] & kRowHoldsBlocks);
  EXPECT_FALSE(trace.rows.flags[2] & kRowHoldsBlocks);
}

TEST_F(TraceBuilderTest, MemoryMappedIntoAReservationWithBlocksIsASegment) {
  script_.Reserve(0x100000000, 1 << 30);
  for (uint64_t i = 0; i < 3; ++i) {
    if (i == 2) script_.Block(0x100000000, kMiB);
    script_.Create(7 + i, 2 * kMiB);
    script_.Map(0x100000000 + i * 2 * kMiB, 2 * kMiB, 7 + i);
  }
  const Trace trace = script_.Build();
  EXPECT_TRUE(trace.rows.flags[0] & kRowHoldsBlocks) << "the block lies in it";
  EXPECT_TRUE(trace.rows.flags[1] & kRowHoldsBlocks) << "mapped before the block was seen";
  EXPECT_TRUE(trace.rows.flags[3] & kRowHoldsBlocks) << "mapped after the block was seen";
}

TEST_F(TraceBuilderTest, ContextResetDropsOnlyThatContext) {
  const auto in_context = [](format::Event& event, uint32_t context) {
    event.present |= format::kHasContext;
    event.context = context;
  };
  in_context(script_.Alloc(0x1000, 1), 1);
  in_context(script_.Pinned(0x2000, 2), 1);
  in_context(script_.Alloc(0x3000, 4), 2);
  script_.Alloc(0x4000, 8);  // unknown context
  script_.Reset(1);
  EXPECT_EQ(Live("driver"), 4u + 8u);
  EXPECT_EQ(Live("host", kHostDevice), 0u);
  script_.Reset(3).present |= format::kHasDevice;
  EXPECT_EQ(Live("driver"), 4u);
}

TEST_F(TraceBuilderTest, FailedAllocationIsKeptButHoldsNoMemory) {
  script_.Failed(3 * kMiB, {"forward"}).result = 2;
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.rows.count(), 0u);
  ASSERT_EQ(trace.failed.size(), 1u);
  EXPECT_EQ(trace.failed[0].size, 3 * kMiB);
}

TEST_F(TraceBuilderTest, CallThatFailsForAnotherReasonIsNoFailedAllocation) {
  constexpr uint32_t kNotPermitted = 800;
  script_.Failed(2 * kMiB, {"ExpandableSegment::map"}).result = kNotPermitted;
  script_.Block(0x1000, 512);
  const Trace trace = script_.Build();
  EXPECT_EQ(trace.failed.size(), 0u);
  EXPECT_EQ(trace.driver_calls.size(), 0u);
}

TEST_F(TraceBuilderTest, ImportedMemoryBelongsToItsExporter) {
  script_.Alloc(0x1000, 512).memory = IPC;
  EXPECT_EQ(Live("driver"), 0u);
}

class SnapshotTest : public TraceBuilderTest {
 protected:
  // A live set with one allocation of 512 bytes, made at `t_ns`.
  Snapshot Holding(uint64_t address, int64_t t_ns) {
    Snapshot snapshot;
    snapshot.set_name("exit");
    snapshot.set_t_ns(t_ns + 1);
    format::Event event;
    event.kind = ALLOC;
    event.heap = script_.builder().InternString("driver");
    event.memory = DEVICE;
    event.address = address;
    event.size = 512;
    event.t_ns = t_ns;
    *snapshot.mutable_live() = format::EncodeLive({event});
    return snapshot;
  }
};

TEST_F(SnapshotTest, MemoryKnownOnlyFromASnapshotIsHeldFromBefore) {
  const Trace trace = script_.Build({Holding(0x1000, 5)});
  EXPECT_THAT(HeldAfter(trace, 0), ElementsAre(0));
  EXPECT_EQ(trace.rows.size[0], 512u);
  ASSERT_EQ(trace.snapshots.size(), 1u);
  EXPECT_EQ(trace.snapshots[0].name, "exit");
}

TEST_F(SnapshotTest, KnownMemoryIsNotCountedTwice) {
  script_.Alloc(0x1000, 512);
  const Trace trace = script_.Build({Holding(0x1000, 5)});
  EXPECT_EQ(trace.rows.count(), 1u);
}

TEST_F(SnapshotTest, EachAllocationWithoutAnAddressIsMemoryOfItsOwn) {
  Snapshot snapshot = Holding(0, 5);
  snapshot.mutable_live()->set_count(3);  // the rows repeat the first
  const Trace trace = script_.Build({snapshot});
  EXPECT_THAT(HeldAfter(trace, 0), ElementsAre(0, 1, 2));
  for (RowId row = 0; row < 3; ++row)
    EXPECT_EQ(trace.rows.flags[row], kRowFromBefore | kRowHandle | kRowUnbacked);
}

TEST_F(SnapshotTest, EventAfterASnapshotWithItsAllocationIsTheSameAllocation) {
  script_.Alloc(0x1000, 512);
  TraceBuilder builder(script_.definitions());
  ASSERT_TRUE(builder.OnSnapshot(Holding(0x1000, 5 * EventScript::kStep_ns)).ok());
  ASSERT_TRUE(builder.OnEvents(script_.batch()).ok());
  const Trace trace = std::move(builder).Build();
  EXPECT_EQ(trace.rows.count(), 1u);
  EXPECT_THAT(HeldAfter(trace, 0), IsEmpty());
  EXPECT_EQ(trace.unknowns.frees_lost, 0u);
  EXPECT_EQ(trace.unknowns.rows_from_before, 0u);
}

}  // namespace
}  // namespace gmt::analysis
