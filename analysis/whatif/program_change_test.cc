#include "analysis/whatif/program_change.h"

#include <cstdint>
#include <random>

#include "analysis/testing/event_script.h"
#include "analysis/whatif/replay.h"
#include "format/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::analysis {
namespace {

class ProgramChangeTest : public ::testing::Test {
 protected:
  void Build() {
    trace_ = script_.Build();
    trace_.devices = {{0, "GPU", 24 * kGiB}};
  }
  RowId RowOf(uint64_t address) const {
    for (RowId row = 0; row < trace_.rows.count(); ++row) {
      if (trace_.rows.address[row] == address && trace_.rows.heap[row] > kHostHeap) return row;
    }
    ADD_FAILURE() << "no block at " << address;
    return 0;
  }

  EventScript script_;
  Trace trace_;
};

TEST_F(ProgramChangeTest, ProgramWithoutChangesHasTheRecordedPeak) {
  std::mt19937 random(7);
  std::vector<uint64_t> held;
  for (uint64_t i = 1; i <= 400; ++i) {
    if (!held.empty() && random() % 2 == 0) {
      script_.FreeBlock(held.back());
      held.pop_back();
    } else {
      script_.Block(i << 32, kMiB * (1 + random() % 9));
      held.push_back(i << 32);
    }
  }
  Build();
  const Examination examination(trace_, script_.definitions());
  const ProgramChange change(trace_, 0);
  const Amount& recorded = examination.replay().devices().at(0).allocated;
  EXPECT_EQ(change.FindPeak().bytes, recorded.peak);
  EXPECT_EQ(change.HeldAt(change.FindPeak().step), recorded.peak);
}

TEST_F(ProgramChangeTest, AnotherMomentBecomesThePeak) {
  script_.Block(1 << 20, 40 * kMiB);
  script_.Block(2 << 20, 30 * kMiB);  // the peak: 70
  script_.FreeBlock(1 << 20);
  script_.Block(3 << 20, 25 * kMiB);  // 55
  Build();
  ProgramChange change(trace_, 0);
  const Step peak = change.FindPeak().step;
  change.Set(RowOf(1 << 20), {});
  EXPECT_EQ(change.HeldAt(peak), 30 * kMiB);
  EXPECT_EQ(change.FindPeak().bytes, 55 * kMiB);  // 40 are freed, but only 15 saved
}

TEST_F(ProgramChangeTest, RecomputedBlockIsHeldTwice) {
  script_.Block(1 << 20, 8 * kMiB);
  script_.Block(2 << 20, 10 * kMiB);
  script_.FreeBlock(2 << 20);
  script_.FreeBlock(1 << 20);
  Build();
  ProgramChange change(trace_, 0);
  change.Set(RowOf(1 << 20), {{1, 2, 8 * kMiB}, {3, 4, 8 * kMiB}});
  EXPECT_EQ(change.FindPeak().bytes, 10 * kMiB);
}

TEST_F(ProgramChangeTest, ReplayOfChangedRequestsHasThePeakOfTheChange) {
  const uint64_t a = uint64_t{1} << 40, b = uint64_t{2} << 40;
  script_.Alloc(a, 40 * kMiB);
  script_.Block(a, 40 * kMiB);
  script_.Alloc(b, 60 * kMiB);
  script_.Block(b, 60 * kMiB);
  script_.FreeBlock(a);
  script_.FreeBlock(b);
  Build();
  const Examination examination(trace_, script_.definitions());
  const auto history = HistoryOf(examination, 0);
  ASSERT_TRUE(history.ok()) << history.status();
  ProgramChange change(trace_, 0);
  Holdings smaller = change.Of(RowOf(a));
  smaller[0].bytes = 20 * kMiB;
  change.Set(RowOf(a), smaller);
  change.Add({smaller[0].begin, kNever, 10 * kMiB});
  const AllocatorHistory changed = ChangedHistory(*history, change);
  EXPECT_EQ(change.FindPeak().bytes, 90 * kMiB);
  EXPECT_EQ(Simulate(changed, {"", history->settings, std::nullopt}).peak_allocated, 90 * kMiB);
  EXPECT_EQ(Simulate(*history, {"", history->settings, std::nullopt}).peak_allocated, 100 * kMiB);
}

TEST_F(ProgramChangeTest, LargerBlockIsRequestedWithItsSize) {
  const uint64_t a = uint64_t{1} << 40;
  script_.Alloc(a, 40 * kMiB);
  script_.Block(a, 40 * kMiB);
  Build();
  const Examination examination(trace_, script_.definitions());
  const auto history = HistoryOf(examination, 0);
  ASSERT_TRUE(history.ok()) << history.status();
  ProgramChange change(trace_, 0);
  Holdings larger = change.Of(RowOf(a));
  larger[0].bytes = 100 * kMiB;
  change.Set(RowOf(a), larger);
  const AllocatorHistory changed = ChangedHistory(*history, change);
  EXPECT_EQ(Simulate(changed, {"", history->settings, std::nullopt}).peak_allocated, 100 * kMiB);
}

}  // namespace
}  // namespace gmt::analysis
