// Traces and segments of the model. Each is undone as the viewer does.

#include "interop/torch/torch_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/testing/random_events.h"
#include "format/units.h"
#include "interop/testing/torch_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::interop {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kBase = uint64_t{1} << 40;

class TorchModelTest : public ::testing::Test {
 protected:
  SelectedTrace Run(const TorchSelection& selection = {}) {
    trace_ = script_.Build();
    SelectedTrace selected = SelectTrace(trace_, selection);
    EXPECT_THAT(selected.Check().problems(), IsEmpty());
    return selected;
  }
  static std::vector<uint64_t> Sizes(const TorchSegment& segment) {
    std::vector<uint64_t> sizes;
    for (const TorchBlock& block : segment.blocks) sizes.push_back(block.size);
    return sizes;
  }
  void MapPages(uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) script_.Create(7 + i, 2 * kMiB);
    for (uint64_t i = first; i < first + count; ++i) {
      script_.Map(kBase + i * 2 * kMiB, 2 * kMiB, 7 + i);
    }
  }
  void OnStream(format::Event& event, uint64_t stream) {
    event.stream = stream;
    event.present |= format::kHasStream;
  }

  analysis::EventScript script_;
  analysis::Trace trace_;
};

TEST_F(TorchModelTest, DriverMemoryWithoutBlocksIsOneBlock) {
  script_.Alloc(kBase, kMiB);
  script_.Free(kBase);
  script_.Alloc(kBase, 2 * kMiB);
  const SelectedTrace selected = Run();
  EXPECT_THAT(selected.Actions(),
              ElementsAre("segment_alloc", "alloc", "free_requested", "free_completed",
                          "segment_free", "segment_alloc", "alloc"));
  ASSERT_THAT(selected.segments, SizeIs(1));
  EXPECT_THAT(Sizes(selected.segments[0]), ElementsAre(2 * kMiB));
}

TEST_F(TorchModelTest, GapsBetweenBlocksAreFreeBlocks) {
  script_.Alloc(kBase, kMiB);
  script_.Block(kBase + 1024, 512);
  script_.Block(kBase + 4096, 512);
  const SelectedTrace selected = Run();
  EXPECT_THAT(Sizes(selected.segments[0]), ElementsAre(1024, 512, 2560, 512, kMiB - 4608));
  EXPECT_EQ(selected.segments[0].blocks[0].row, analysis::kNoRow);
}

TEST_F(TorchModelTest, SegmentWhoseBlocksAreAllFreedIsOneFreeBlock) {
  script_.Alloc(kBase, kMiB);
  script_.Block(kBase, 512);
  script_.FreeBlock(kBase);
  const SelectedTrace selected = Run();
  EXPECT_THAT(Sizes(selected.segments[0]), ElementsAre(kMiB));
  EXPECT_EQ(selected.segments[0].blocks[0].row, analysis::kNoRow);
}

TEST_F(TorchModelTest, PagesMappedByOneCallAreOneEntry) {
  MapPages(0, 3);
  script_.Block(kBase, 5 * kMiB);
  MapPages(3, 2);
  script_.Block(kBase + 6 * kMiB, 4 * kMiB);
  const SelectedTrace selected = Run();
  EXPECT_THAT(selected.Actions(), ElementsAre("segment_map", "alloc", "segment_map", "alloc"));
  EXPECT_EQ(selected.events[0].size, 6 * kMiB);
  ASSERT_THAT(selected.segments, SizeIs(1));
  EXPECT_TRUE(selected.segments[0].expandable);
  EXPECT_THAT(Sizes(selected.segments[0]), ElementsAre(5 * kMiB, kMiB, 4 * kMiB));
}

TEST_F(TorchModelTest, PagesUnmappedAndReleasedInTurnAreOneEntry) {
  MapPages(0, 3);
  script_.Block(kBase, 6 * kMiB);
  script_.FreeBlock(kBase);
  for (uint64_t i = 1; i < 3; ++i) {
    script_.Unmap(kBase + i * 2 * kMiB, 2 * kMiB);
    script_.Release(7 + i);
  }
  const SelectedTrace selected = Run();
  EXPECT_THAT(selected.Actions(), ElementsAre("segment_map", "alloc", "free_requested",
                                              "free_completed", "segment_unmap"));
  EXPECT_EQ(selected.events.back().size, 4 * kMiB);
  EXPECT_EQ(selected.segments[0].size, 2 * kMiB);
}

TEST_F(TorchModelTest, UnmappingTheMiddleLeavesTwoSegments) {
  MapPages(0, 3);
  script_.Block(kBase, kMiB);
  script_.Block(kBase + 4 * kMiB, kMiB);
  script_.Unmap(kBase + 2 * kMiB, 2 * kMiB);
  script_.Release(8);
  const SelectedTrace selected = Run();
  ASSERT_THAT(selected.segments, SizeIs(2));
  EXPECT_EQ(selected.segments[1].address, kBase + 4 * kMiB);
}

TEST_F(TorchModelTest, MappingsWithoutBlocksStayApart) {
  MapPages(0, 2);
  EXPECT_THAT(Run().segments, SizeIs(2));
}

TEST_F(TorchModelTest, SegmentHasTheStreamOfItsFirstBlock) {
  script_.Alloc(kBase, 2 * kMiB);
  OnStream(script_.Block(kBase, 512), 0x10);
  MapPages(64, 1);
  OnStream(script_.Block(kBase + 128 * kMiB, 2 * kMiB), 0x20);
  const SelectedTrace selected = Run();
  EXPECT_EQ(selected.events[0].stream, 0x10u);  // segment_alloc
  EXPECT_EQ(selected.events[2].stream, 0x20u);  // segment_map
  EXPECT_EQ(selected.segments[0].stream, 0x10u);
  EXPECT_EQ(selected.segments[1].stream, 0x20u);
}

TEST_F(TorchModelTest, SegmentHasThePoolOfItsFirstBlock) {
  script_.Alloc(kBase, 2 * kMiB);
  script_.Block(kBase, 512);
  script_.Alloc(kBase + 64 * kMiB, 2 * kMiB);
  script_.Block(kBase + 64 * kMiB, 2 * kMiB);
  const SelectedTrace selected = Run();
  EXPECT_TRUE(selected.segments[0].small);
  EXPECT_FALSE(selected.segments[1].small);
}

TEST_F(TorchModelTest, BlockOutsideKnownMemoryHasItsOwnSegment) {
  script_.Block(kBase, 512);
  script_.Block(kBase + 4096, 512);
  script_.FreeBlock(kBase);
  const SelectedTrace selected = Run();
  EXPECT_THAT(selected.Actions(), ElementsAre("segment_alloc", "alloc", "segment_alloc", "alloc",
                                              "free_requested", "free_completed", "segment_free"));
  ASSERT_THAT(selected.segments, SizeIs(1));
  EXPECT_THAT(Sizes(selected.segments[0]), ElementsAre(512));
}

TEST_F(TorchModelTest, BlocksThatOverlapANewerOneHaveEnded) {
  script_.Alloc(kBase, kMiB);
  script_.Block(kBase, 4096);
  script_.Block(kBase + 512, 512);
  const SelectedTrace selected = Run();
  EXPECT_EQ(selected.counts.made_up, 1u);
  EXPECT_THAT(Sizes(selected.segments[0]), ElementsAre(512, 512, kMiB - 1024));
}

TEST_F(TorchModelTest, FreesComeBeforeTheEndOfTheirSegment) {
  script_.Alloc(kBase, kMiB);
  script_.Block(kBase, 512);
  script_.Free(kBase);
  const SelectedTrace selected = Run();
  EXPECT_EQ(selected.counts.made_up, 1u);
  EXPECT_THAT(selected.Actions(), ElementsAre("segment_alloc", "alloc", "free_requested",
                                              "free_completed", "segment_free"));
}

TEST_F(TorchModelTest, ArraysAreShownAtMadeUpAddresses) {
  script_.Alloc(0x10, kMiB).memory = ARRAY;
  script_.Alloc(0x20, kMiB).memory = ARRAY;
  script_.Free(0x10).memory = ARRAY;
  const SelectedTrace selected = Run();
  EXPECT_EQ(selected.counts.moved, 2u);
  ASSERT_THAT(selected.segments, SizeIs(1));
  EXPECT_EQ(selected.segments[0].address, (uint64_t{1} << 52) + kMiB);
}

TEST_F(TorchModelTest, AddressesThatAreInexactInFloatingPointAreLeftOut) {
  script_.Alloc((uint64_t{1} << 53) + 1, 512);
  script_.Alloc(~uint64_t{0} - 511, 512);
  script_.Alloc(kBase, kMiB);
  const SelectedTrace selected = Run();
  EXPECT_EQ(selected.counts.left_out, 2u);
  EXPECT_THAT(selected.segments, SizeIs(1));
}

TEST_F(TorchModelTest, BlockThatWaitsForAStreamIsPending) {
  script_.Alloc(kBase, 2 * kMiB);
  script_.Block(kBase, 512);
  script_.Block(kBase + 512, 512);
  script_.RecordEvent(0x71, 0x1234);
  script_.FreeBlock(kBase);
  script_.RecordEvent(0x72, 0x1234);
  script_.FreeBlock(kBase + 512);
  script_.EventDone(0x71);
  const SelectedTrace selected = Run();
  EXPECT_THAT(selected.Actions(), ElementsAre("segment_alloc", "alloc", "alloc", "free_requested",
                                              "free_requested", "free_completed"));
  EXPECT_EQ(selected.events.back().t_ns, 8 * analysis::EventScript::kStep_ns);
  ASSERT_THAT(selected.segments[0].blocks, SizeIs(3));
  EXPECT_TRUE(selected.segments[0].blocks[1].pending);
}

TEST_F(TorchModelTest, SnapshotStatesTheBytesInBlocks) {
  script_.Alloc(kBase, 2 * kMiB);
  script_.Block(kBase, 512);
  script_.SnapshotTaken("mark");
  const SelectedTrace selected = Run();
  EXPECT_EQ(selected.Actions().back(), "snapshot");
  EXPECT_EQ(selected.events.back().size, 512u);
}

// Whatever was lost, every moment can be rebuilt, and the state before the first event is what the
// recording has as its beginning.
TEST(TorchModelRandomTest, EveryMomentOfALossyRecordingCanBeRebuilt) {
  ForEachSeed(SeedsUpTo(300), [](uint32_t seed) {
    analysis::EventScript script = SloppyScript(seed).Write(200);
    const analysis::Trace trace = script.Build();
    TorchSelection selection;
    selection.max_events = 0;
    const SelectedTrace selected = SelectTrace(trace, selection);
    const TorchCheck check = selected.Check();
    ASSERT_THAT(check.problems(), IsEmpty());
    if (trace.unknowns.rows_from_before == 0) {
      ASSERT_THAT(check.segments(), IsEmpty());
      ASSERT_THAT(check.blocks(), IsEmpty());
    }
    ASSERT_EQ(selected.events.size(), selected.plan.events);
  });
}

TEST(TorchModelRandomTest, HostileEventsDoNoHarm) {
  ForEachSeed(SeedsUpTo(100), [](uint32_t seed) {
    analysis::EventScript script;
    script.Block(kBase, 512, {"a", "b"});
    format::RandomEvents random(seed);
    format::EventBatch batch = script.batch();
    for (int i = 0; i < 500; ++i) random.AddTo(&batch, 3);
    analysis::TraceBuilder builder(script.definitions());
    builder.OnEvents(batch).IgnoreError();
    const analysis::Trace trace = std::move(builder).Build();
    for (int32_t device = 0; device < 2; ++device) {
      ASSERT_THAT(SelectTrace(trace, {}, device).Check().problems(), IsEmpty());
    }
  });
}

}  // namespace
}  // namespace gmt::interop
