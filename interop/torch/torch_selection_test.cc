#include "interop/torch/torch_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/units.h"
#include "interop/testing/torch_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::interop {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kFirstAddress = uint64_t{1} << 40;
constexpr int64_t kMillisecond = 1'000'000;

// One segment; 8 blocks of 1 to 8 times 512 bytes, each freed at once; one block that stays.
analysis::EventScript Steps() {
  analysis::EventScript script;
  script.Alloc(kFirstAddress, 2 * kMiB);    // 1 ms
  script.Block(kFirstAddress + kMiB, 512);  // 2 ms
  for (uint64_t i = 1; i <= 8; ++i) {       // 3 ms, 4 ms; ...
    script.Block(kFirstAddress, 512 * i);
    script.FreeBlock(kFirstAddress);
  }
  return script;
}

uint64_t Covered(const TorchCheck& check) {
  uint64_t bytes = 0;
  for (const auto& [address, segment] : check.segments()) bytes += segment.size;
  return bytes;
}

SelectedTrace Selected(analysis::EventScript script, const TorchSelection& selection) {
  const analysis::Trace trace = script.Build();
  SelectedTrace selected = SelectTrace(trace, selection);
  EXPECT_THAT(selected.Check().problems(), IsEmpty());
  return selected;
}

TEST(TorchSelectionTest, WithoutALimitEverythingIsIncluded) {
  TorchSelection selection;
  selection.max_events = 0;
  EXPECT_THAT(Selected(Steps(), selection).events, SizeIs(2 + 8 * 3));
}

TEST(TorchSelectionTest, NewestKeepsTheEndAndTheStateBeforeIt) {
  TorchSelection selection;
  selection.max_events = 7;
  const SelectedTrace selected = Selected(Steps(), selection);
  EXPECT_EQ(selected.plan.events, 26u);
  EXPECT_THAT(selected.Actions(), ElementsAre("alloc", "free_requested", "free_completed", "alloc",
                                              "free_requested", "free_completed"));
  const TorchCheck check = selected.Check();
  EXPECT_THAT(check.segments(), SizeIs(1));
  EXPECT_THAT(check.blocks(), SizeIs(1));  // the block that stays, which existed before
}

TEST(TorchSelectionTest, LargestDropsTheSmallestPairsOnly) {
  TorchSelection selection;
  selection.max_events = 10;
  selection.keep = TorchSelection::Keep::kLargest;
  const SelectedTrace selected = Selected(Steps(), selection);
  EXPECT_THAT(selected.events, SizeIs(2 + 2 * 3));
  EXPECT_EQ(selected.events[2].size, 512u * 7);
  EXPECT_EQ(selected.events[5].size, 512u * 8);
  EXPECT_EQ(selected.plan.rows_left, 6u);
  EXPECT_EQ(selected.plan.largest_left, 512u * 6);
  EXPECT_EQ(selected.segments[0].blocks.size(), 3u);  // free, the block that stays, free
}

TEST(TorchSelectionTest, MemoryHeldAtTheEndIsIncludedDespiteTheLimit) {
  TorchSelection selection;
  selection.max_events = 1;
  selection.keep = TorchSelection::Keep::kLargest;
  EXPECT_THAT(Selected(Steps(), selection).Actions(), ElementsAre("segment_alloc", "alloc"));
}

TEST(TorchSelectionTest, WindowBeginsWithTheStateOfItsBeginning) {
  TorchSelection selection;
  selection.window = {4 * kMillisecond, 6 * kMillisecond};
  const SelectedTrace selected = Selected(Steps(), selection);
  // The free of the first block, then the second block and its free.
  EXPECT_THAT(selected.Actions(), ElementsAre("free_requested", "free_completed", "alloc",
                                              "free_requested", "free_completed"));
  const TorchCheck check = selected.Check();
  EXPECT_THAT(check.blocks(), SizeIs(2));
}

TEST(TorchSelectionTest, WindowEndsWithTheStateOfItsEnd) {
  TorchSelection selection;
  selection.window.to_ns = 3 * kMillisecond;
  const SelectedTrace selected = Selected(Steps(), selection);
  EXPECT_THAT(selected.events, SizeIs(3));
  EXPECT_THAT(selected.segments[0].blocks, SizeIs(4));  // block, free, block, free
}

TEST(TorchSelectionTest, WindowAfterTheEndHasTheStateAndNoEvents) {
  TorchSelection selection;
  selection.window.from_ns = 1000 * kMillisecond;
  const SelectedTrace selected = Selected(Steps(), selection);
  EXPECT_THAT(selected.events, IsEmpty());
  EXPECT_THAT(selected.segments, SizeIs(1));
}

// Undoing a window to its beginning gives the final state of a window that ends there.
TEST(TorchSelectionRandomTest, WindowsOfALossyRecordingJoin) {
  ForEachSeed(SeedsUpTo(200), [](uint32_t seed) {
    SloppyScript sloppy(seed);
    analysis::EventScript script = sloppy.Write(60);
    script.SnapshotTaken("border");  // ends the run of mappings of one call
    sloppy.AddTo(script, 60);
    const analysis::Trace trace = script.Build();
    TorchSelection before, after;
    before.window.to_ns = 61 * kMillisecond;
    after.window.from_ns = 61 * kMillisecond + 1;
    const TorchCheck begin = SelectTrace(trace, after).Check();
    const TorchCheck end(SelectTrace(trace, before).segments);
    ASSERT_THAT(begin.problems(), IsEmpty());
    EXPECT_TRUE(begin.blocks() == end.blocks());
    // Which ranges form one segment depends on streams that are learnt later.
    EXPECT_EQ(Covered(begin), Covered(end));
  });
}

TEST(TorchSelectionRandomTest, LimitsHoldForALossyRecording) {
  ForEachSeed(SeedsUpTo(200), [](uint32_t seed) {
    analysis::EventScript script = SloppyScript(seed).Write(150);
    const analysis::Trace trace = script.Build();
    TorchSelection selection;
    selection.max_events = 40;
    const SelectedTrace newest = SelectTrace(trace, selection);
    EXPECT_LE(newest.events.size(), 40u);
    ASSERT_THAT(newest.Check().problems(), IsEmpty());
    selection.keep = TorchSelection::Keep::kLargest;
    const SelectedTrace largest = SelectTrace(trace, selection);
    ASSERT_THAT(largest.Check().problems(), IsEmpty());
    EXPECT_LE(largest.events.size(), newest.plan.events);
    EXPECT_TRUE(TorchCheck(largest.segments).blocks() == TorchCheck(newest.segments).blocks());
  });
}

}  // namespace
}  // namespace gmt::interop
