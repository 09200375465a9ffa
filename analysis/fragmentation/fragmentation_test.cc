#include "analysis/fragmentation/fragmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kA = 0x10000000, kB = 0x40000000, kC = 0x80000000;

class FragmentationTest : public ::testing::Test {
 protected:
  Fragmentation AtEnd(const Requester& requester = {}) {
    trace_ = script_.Build();
    const Examination examination(trace_, script_.definitions());
    Fragmentation found = FragmentationAfter(examination, 0, trace_.last_step(), requester);
    EXPECT_EQ(found.split.sum(), found.reserved_bytes - found.allocated_bytes);
    EXPECT_EQ(found.free_bytes, found.split.sum());
    return found;
  }
  void OnStream(format::Event& event, uint64_t stream) {
    event.present |= format::kHasStream;
    event.stream = stream;
  }
  EventScript script_;
  Trace trace_;
};

TEST_F(FragmentationTest, WithoutSegmentsThereIsNothing) {
  script_.Alloc(kA, 20 * kMiB);
  const Fragmentation found = AtEnd();
  EXPECT_EQ(found.reserved_bytes, 0u);
  EXPECT_THAT(found.segments, IsEmpty());
  const Examination examination(trace_, script_.definitions());
  EXPECT_THAT(FindFragmentation(examination, {}).value(), IsEmpty());
}

TEST_F(FragmentationTest, FreeBesideABlockIsPinnedByItAndAWholeSegmentIsReleasable) {
  script_.Alloc(kA, 64 * kMiB);
  script_.Block(kA + 10 * kMiB, 4 * kMiB);
  script_.Alloc(kB, 32 * kMiB);
  script_.Block(kB, 32 * kMiB);
  script_.FreeBlock(kB);
  const Fragmentation found = AtEnd();
  EXPECT_EQ(found.reserved_bytes, 96 * kMiB);
  EXPECT_EQ(found.allocated_bytes, 4 * kMiB);
  EXPECT_EQ(found.split.pinned, 60 * kMiB);
  EXPECT_EQ(found.split.releasable, 32 * kMiB);
  EXPECT_EQ(found.largest_free_bytes, 50 * kMiB);
  ASSERT_THAT(found.pins, SizeIs(1));
  EXPECT_EQ(found.pins[0].pinned_bytes, 60 * kMiB);
  EXPECT_EQ(found.expandable_bytes, 60 * kMiB);
  ASSERT_THAT(found.segments, SizeIs(2));
  EXPECT_THAT(found.segments[0].pieces, SizeIs(3));
}

TEST_F(FragmentationTest, FreeBetweenTwoBlocksCountsHalfForEach) {
  script_.Alloc(kA, 64 * kMiB);
  script_.Block(kA, 2 * kMiB, {"left"});
  script_.Block(kA + 62 * kMiB, 2 * kMiB, {"right"});
  const Fragmentation found = AtEnd();
  ASSERT_THAT(found.pins, SizeIs(2));
  EXPECT_EQ(found.pins[0].pinned_bytes, 30 * kMiB);
  EXPECT_EQ(found.pins[1].pinned_bytes, 30 * kMiB);
  EXPECT_THAT(found.pin_groups, SizeIs(2));
}

TEST_F(FragmentationTest, PinsOfOneLineAreOneGroup) {
  for (uint64_t i = 0; i < 3; ++i) {
    script_.Alloc(kA + i * 64 * kMiB, 64 * kMiB);
    script_.Block(kA + i * 64 * kMiB, 2 * kMiB, {"metric"});
  }
  const Fragmentation found = AtEnd();
  const std::vector<PinGroup>& groups = found.pin_groups;
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(groups[0].blocks, 3u);
  EXPECT_EQ(groups[0].block_bytes, 6 * kMiB);
  EXPECT_EQ(groups[0].pinned_bytes, 186 * kMiB);
  EXPECT_EQ(groups[0].first_birth, 2u);
}

TEST_F(FragmentationTest, MemoryInAnotherStreamsListIsUnavailableToTheRequester) {
  script_.Alloc(kA, 64 * kMiB);
  OnStream(script_.Block(kA, 4 * kMiB), 1);
  script_.Alloc(kB, 100 * kMiB);
  OnStream(script_.Block(kB, 4 * kMiB), 7);
  const Fragmentation of_one = AtEnd({1, std::nullopt});
  EXPECT_EQ(of_one.split.pinned, 60 * kMiB);
  EXPECT_EQ(of_one.split.stream, 96 * kMiB);
  EXPECT_EQ(of_one.largest_free_bytes, 60 * kMiB);
  const Fragmentation of_busiest = AtEnd();
  EXPECT_EQ(of_busiest.requesting_stream, 7u);
  EXPECT_EQ(of_busiest.split.stream, 60 * kMiB);
}

TEST_F(FragmentationTest, FreeSegmentOfAnotherStreamIsReleasable) {
  script_.Alloc(kA, 64 * kMiB);
  OnStream(script_.Block(kA, 4 * kMiB), 1);
  script_.Alloc(kB, 100 * kMiB);
  OnStream(script_.Block(kB, 4 * kMiB), 7);
  script_.FreeBlock(kB);
  const Fragmentation found = AtEnd({1, std::nullopt});
  EXPECT_EQ(found.split.releasable, 100 * kMiB);
  EXPECT_EQ(found.split.stream, 0u);
  EXPECT_EQ(found.segments[1].stream, 7u);  // known from an earlier block
}

TEST_F(FragmentationTest, SmallRequestsDoNotGetLargePieces) {
  script_.Alloc(kA, 64 * kMiB);
  script_.Block(kA, 4 * kMiB);
  script_.Alloc(kB, 2 * kMiB);
  script_.Block(kB, 512);
  EXPECT_EQ(AtEnd({std::nullopt, 4096}).largest_free_bytes, 2 * kMiB - 512);
  EXPECT_EQ(AtEnd({std::nullopt, 2 * kMiB}).largest_free_bytes, 60 * kMiB);
}

TEST_F(FragmentationTest, PoolThatTheRecordingNamesIsPrivate) {
  format::Event& segment = script_.Alloc(kA, 64 * kMiB);
  segment.present |= format::kHasPool;
  segment.pool = 3;
  script_.Block(kA, 4 * kMiB);
  const Fragmentation found = AtEnd();
  EXPECT_EQ(found.split.private_pool, 60 * kMiB);
  EXPECT_EQ(found.largest_free_bytes, 0u);
}

TEST_F(FragmentationTest, BlocksOfACaptureLieInAPrivatePool) {
  script_.Alloc(kA, 64 * kMiB);
  OnStream(script_.Block(kA, 4 * kMiB), 7);
  script_.Graph("begin_capture", 7);
  script_.Alloc(kB, 32 * kMiB);
  OnStream(script_.Block(kB, 4 * kMiB), 7);
  script_.FreeBlock(kB);
  script_.Graph("end_capture", 7);
  const Fragmentation found = AtEnd();
  EXPECT_EQ(found.split.private_pool, 32 * kMiB);
  EXPECT_EQ(found.split.pinned, 60 * kMiB);
  EXPECT_FALSE(found.segments[0].is_private);
  EXPECT_TRUE(found.segments[1].is_private);
}

TEST_F(FragmentationTest, BlockThatAwaitsAStreamIsNeitherFreeNorLive) {
  script_.Alloc(kA, 64 * kMiB);
  script_.Block(kA, 4 * kMiB);
  script_.Block(kA + 4 * kMiB, 8 * kMiB);
  script_.FreeBlock(kA);
  script_.FreeBlockDone(kA);
  script_.FreeBlock(kA + 4 * kMiB);
  const Fragmentation found = AtEnd();
  EXPECT_EQ(found.allocated_bytes, 0u);
  EXPECT_EQ(found.split.awaiting_stream, 8 * kMiB);
  EXPECT_EQ(found.split.pinned, 56 * kMiB);
  EXPECT_THAT(found.pins, IsEmpty());
}

TEST_F(FragmentationTest, WholePagesOfAnExpandableSegmentAreReleasable) {
  script_.Reserve(kC, 1024 * kMiB);
  for (uint64_t page = 0; page < 4; ++page) {
    script_.Create(100 + page, 20 * kMiB);
    script_.Map(kC + page * 20 * kMiB, 20 * kMiB, 100 + page);
  }
  script_.Block(kC, 5 * kMiB);
  script_.Block(kC + 70 * kMiB, 10 * kMiB);
  const Fragmentation found = AtEnd();
  EXPECT_EQ(found.reserved_bytes, 80 * kMiB);
  EXPECT_EQ(found.split.releasable, 40 * kMiB);
  EXPECT_EQ(found.split.pinned, 25 * kMiB);
  EXPECT_EQ(found.largest_free_bytes, 65 * kMiB);
  EXPECT_EQ(found.expandable_bytes, 0u);
  ASSERT_THAT(found.segments, SizeIs(1));
  EXPECT_TRUE(found.segments[0].is_expandable);
}

TEST_F(FragmentationTest, RoundingIsKnownIfAllRequestsAreKnown) {
  script_.Alloc(kA, 2 * kMiB);
  format::Event& block = script_.Block(kA, 512);
  block.present |= format::kHasRequested;
  block.requested = 100;
  EXPECT_EQ(AtEnd().rounding_bytes, 412u);
  script_.Block(kA + 512, 512);
  EXPECT_EQ(AtEnd().rounding_bytes, std::nullopt);
}

TEST_F(FragmentationTest, ErrorListsDevicesWithSegments) {
  script_.Alloc(kA, 2 * kMiB);
  script_.Block(kA, 512);
  const Trace trace = script_.Build();
  const Examination examination(trace, script_.definitions());
  FragmentationOptions options;
  options.device = 3;
  EXPECT_THAT(std::string(FindFragmentation(examination, options).status().message()),
              HasSubstr("available: GPU 0"));
}

TEST_F(FragmentationTest, HostileSizesAndAddressesKeepTheSum) {
  script_.Alloc(kA, 20 * kMiB);
  script_.Block(kA, 4 * kMiB);
  script_.Block(kA + 2 * kMiB, 60 * kMiB);  // overlaps, and extends beyond the segment
  script_.Alloc(kA + 10 * kMiB, UINT64_MAX - kA - 10 * kMiB);
  script_.Block(UINT64_MAX - 4096, 4096);
  script_.Block(kA + 15 * kMiB, UINT64_MAX - 7);
  AtEnd();
}

}  // namespace
}  // namespace gmt::analysis
