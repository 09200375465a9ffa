#include "analysis/examination/replay.h"

#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

constexpr int64_t kStep_ns = EventScript::kStep_ns;

TEST(Replay, PeakIsTheFirstStateWithMostBytes) {
  EventScript script;
  script.Alloc(0x1000, 100);
  script.Alloc(0x2000, 200);  // 300
  script.Free(0x1000);
  script.Alloc(0x3000, 100);  // 300 again
  script.Free(0x2000);
  const Trace trace = script.Build();
  const Replay replay(trace);
  const HeapTotals& driver = replay.heaps().at({0, kDriverHeap});
  EXPECT_EQ(driver.bytes.peak, 300u);
  EXPECT_EQ(driver.bytes.peak_step, 2u);
  EXPECT_EQ(driver.bytes.live, 100u);
  EXPECT_EQ(driver.allocations, 3u);
  EXPECT_EQ(driver.frees, 2u);
}

TEST(Replay, DevicesAndHeapsHaveSeparatePeaks) {
  EventScript script;
  script.Alloc(0x1000, 100);
  script.Free(0x1000);
  script.Alloc(0x2000, 50).device = 1;
  script.Pinned(0x3000, 10);
  const Trace trace = script.Build();
  const Replay replay(trace);
  EXPECT_EQ(replay.devices().at(0).bytes.peak_step, 1u);
  EXPECT_EQ(replay.devices().at(1).bytes.peak, 50u);
  EXPECT_EQ(replay.devices().at(kHostDevice).bytes.peak, 10u);
}

TEST(Replay, DevicePeakCountsEachByteOnceAndPrefersTheFullestSegments) {
  EventScript script;
  script.Alloc(0x100000, kMiB);  // step 1: a segment
  script.Block(0x100000, 100);
  script.Block(0x100200, 300);  // step 3: fullest
  script.FreeBlock(0x100000);
  const Trace trace = script.Build();
  const Replay replay(trace);
  const DeviceTotals& device = replay.devices().at(0);
  EXPECT_EQ(device.bytes.peak, kMiB);
  EXPECT_EQ(device.bytes.peak_step, 3u);
  EXPECT_EQ(device.segments.peak, kMiB);
}

TEST(Replay, AllocatedIsWhatWasRequestedNotWhatAnAllocatorKeeps) {
  EventScript script;
  script.Alloc(0x100000, kMiB);  // a segment, which stays
  script.Block(0x100000, 100);
  script.Block(0x100200, 300);  // step 3: 400 in blocks
  script.FreeBlock(0x100200);
  script.Alloc(0x900000, 200);   // step 5: not a segment; 300 in total
  script.Alloc(0xa00000, kMiB);  // step 6: a segment; now most is held
  script.Block(0xa00000, 50);
  const Trace trace = script.Build();
  const Replay replay(trace);
  const DeviceTotals& device = replay.devices().at(0);
  EXPECT_EQ(device.allocated.peak, 400u);
  EXPECT_EQ(device.allocated.peak_step, 3u);
  EXPECT_EQ(device.allocated.live, 350u);
  EXPECT_EQ(device.bytes.peak, 2 * kMiB + 200);
}

TEST(Replay, BlocksWithoutKnownSegmentsCountThemselves) {
  EventScript script;
  script.Block(0x1000, 100);
  const Trace trace = script.Build();
  EXPECT_EQ(Replay(trace).devices().at(0).bytes.peak, 100u);
}

TEST(Replay, StacksHavePeaks) {
  EventScript script;
  const uint32_t load = script.Stack({"load", "main"});
  script.Alloc(0x1000, 100, {"load", "main"});
  script.Alloc(0x2000, 100, {"load", "main"});
  script.Free(0x1000);
  script.Alloc(0x3000, 7);
  const Trace trace = script.Build();
  const Replay replay(trace);
  EXPECT_EQ(replay.stacks()[load].peak, 200u);
  EXPECT_EQ(replay.stacks()[load].live, 100u);
  EXPECT_EQ(replay.stacks()[0].live, 7u);
}

TEST(Replay, WindowFindsPeaksInsideAndBeginsWithHeldMemory) {
  EventScript script;
  script.Alloc(0x1000, 1000);  // 1 ms
  script.Free(0x1000);         // 2 ms
  script.Alloc(0x2000, 300);   // 3 ms
  script.Free(0x2000);         // 4 ms
  script.Alloc(0x3000, 900);   // 5 ms
  const Trace trace = script.Build();
  const auto peak = [&](int64_t from, int64_t to) {
    return Replay(trace, {from * kStep_ns, to * kStep_ns}).devices().at(0).bytes.peak;
  };
  EXPECT_EQ(peak(2, 2), 1000u) << "held when the window begins";
  EXPECT_EQ(peak(3, 4), 300u);
  EXPECT_EQ(peak(3, 99), 900u);
  EXPECT_EQ(peak(50, 99), 900u) << "nothing happens in the window, but something is held";
  EXPECT_EQ((Replay(trace, {3 * kStep_ns, 4 * kStep_ns}).heaps().at({0, 0}).allocations), 1u);
}

TEST(Replay, StepAtIsTheStateBeforeTheFirstLaterEvent) {
  EventScript script;
  script.Alloc(0x1000, 1);
  script.Alloc(0x2000, 1);
  const Trace trace = script.Build();
  EXPECT_EQ(StepAt(trace, 0), 0u);
  EXPECT_EQ(StepAt(trace, kStep_ns), 1u);
  EXPECT_EQ(StepAt(trace, INT64_MAX), 2u);
}

TEST(Replay, EmptyTraceHasNothing) {
  const Trace trace;
  EXPECT_TRUE(Replay(trace).devices().empty());
}

}  // namespace
}  // namespace gmt::analysis
