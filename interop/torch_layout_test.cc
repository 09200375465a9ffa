#include "interop/torch_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/event_script.h"

namespace gmt::interop {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kBase = uint64_t{1} << 40;

class TorchLayoutTest : public ::testing::Test {
 protected:
  // Segments at the end, each checked for the rules that PyTorch's tools assert.
  std::vector<TorchSegment> Segments() {
    const analysis::Trace trace = script_.Build();
    std::vector<TorchSegment> segments = SegmentsAfter(trace, trace.last_step());
    for (const TorchSegment& segment : segments) {
      uint64_t at = segment.address;
      for (const TorchBlock& block : segment.blocks) {
        EXPECT_EQ(block.address, at);
        at += block.size;
      }
      EXPECT_EQ(at, segment.address + segment.size);
    }
    return segments;
  }
  static std::vector<uint64_t> Sizes(const TorchSegment& segment) {
    std::vector<uint64_t> sizes;
    for (const TorchBlock& block : segment.blocks) sizes.push_back(block.size);
    return sizes;
  }

  analysis::EventScript script_;
};

TEST_F(TorchLayoutTest, DriverMemoryWithoutBlocksIsOneBlock) {
  script_.Alloc(kBase, kMiB);
  const auto segments = Segments();
  ASSERT_THAT(segments, SizeIs(1));
  EXPECT_THAT(Sizes(segments[0]), ElementsAre(kMiB));
  EXPECT_NE(segments[0].blocks[0].row, analysis::kNoRow);
}

TEST_F(TorchLayoutTest, GapsBetweenBlocksAreFreeBlocks) {
  script_.Alloc(kBase, kMiB);
  script_.Block(kBase + 1024, 512);
  script_.Block(kBase + 4096, 512);
  const auto segments = Segments();
  EXPECT_THAT(Sizes(segments[0]), ElementsAre(1024, 512, 2560, 512, kMiB - 4608));
  EXPECT_EQ(segments[0].blocks[0].row, analysis::kNoRow);
}

TEST_F(TorchLayoutTest, SegmentWhoseBlocksAreAllFreedIsOneFreeBlock) {
  script_.Alloc(kBase, kMiB);
  script_.Block(kBase, 512);
  script_.FreeBlock(kBase);
  const auto segments = Segments();
  EXPECT_THAT(Sizes(segments[0]), ElementsAre(kMiB));
  EXPECT_EQ(segments[0].blocks[0].row, analysis::kNoRow);
}

TEST_F(TorchLayoutTest, AdjoiningMappingsWithBlocksAreOneExpandableSegment) {
  for (uint64_t i = 0; i < 3; ++i) {
    script_.Create(7 + i, 2 * kMiB);
    script_.Map(kBase + i * 2 * kMiB, 2 * kMiB, 7 + i);
  }
  script_.Block(kBase, 5 * kMiB);
  const auto segments = Segments();
  ASSERT_THAT(segments, SizeIs(1));
  EXPECT_TRUE(segments[0].expandable);
  EXPECT_THAT(Sizes(segments[0]), ElementsAre(5 * kMiB, kMiB));
}

TEST_F(TorchLayoutTest, MappingsWithoutBlocksStayApart) {
  for (uint64_t i = 0; i < 2; ++i) {
    script_.Create(7 + i, 2 * kMiB);
    script_.Map(kBase + i * 2 * kMiB, 2 * kMiB, 7 + i);
  }
  EXPECT_THAT(Segments(), SizeIs(2));
}

TEST_F(TorchLayoutTest, UnmappedAndHostMemoryHaveNoPlace) {
  script_.Create(7, 2 * kMiB);
  script_.Pinned(0x1000, 512);
  EXPECT_THAT(Segments(), SizeIs(0));
}

TEST_F(TorchLayoutTest, BlockOutsideKnownMemoryIsASegmentOfItsOwn) {
  script_.Block(kBase, 512);
  const auto segments = Segments();
  ASSERT_THAT(segments, SizeIs(1));
  EXPECT_THAT(Sizes(segments[0]), ElementsAre(512));
}

TEST_F(TorchLayoutTest, OverlappingBlocksOfALossyRecordingKeepTheSums) {
  script_.Alloc(kBase, kMiB);
  script_.Block(kBase, 4096);
  script_.Block(kBase + 512, 512);
  EXPECT_THAT(Segments(), SizeIs(1));
}

}  // namespace
}  // namespace gmt::interop
