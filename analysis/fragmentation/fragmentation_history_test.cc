#include "analysis/fragmentation/fragmentation_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kSegment = 0x10000000;

class FragmentationHistoryTest : public ::testing::Test {
 protected:
  std::vector<FragmentationMoment> History(size_t moments) {
    trace_ = script_.Build();
    const Examination examination(trace_, script_.definitions());
    return FragmentationHistory(examination, 0, moments);
  }
  EventScript script_;
  Trace trace_;
};

TEST_F(FragmentationHistoryTest, WithoutEventsThereIsNoHistory) {
  EXPECT_THAT(History(10), IsEmpty());
}

TEST_F(FragmentationHistoryTest, PartIsShownWhereMostIsInBlocks) {
  script_.Alloc(kSegment, 64 * kMiB);
  script_.Block(kSegment, 40 * kMiB);
  script_.Block(kSegment + 40 * kMiB, 20 * kMiB);
  script_.FreeBlock(kSegment + 40 * kMiB);
  script_.FreeBlock(kSegment);
  const auto history = History(1);
  ASSERT_THAT(history, SizeIs(1));
  EXPECT_EQ(history[0].step, 3);
  EXPECT_EQ(history[0].allocated_bytes, 60 * kMiB);
  EXPECT_EQ(history[0].split.pinned, 4 * kMiB);
}

TEST_F(FragmentationHistoryTest, ShortRecordingHasAMomentForEachStep) {
  script_.Alloc(kSegment, 2 * kMiB);
  script_.Block(kSegment, kMiB);
  const auto history = History(100);
  ASSERT_THAT(history, SizeIs(2));
  EXPECT_EQ(history[0].split.releasable, 2 * kMiB);
  EXPECT_EQ(history[1].split.pinned, kMiB);
}

TEST_F(FragmentationHistoryTest, MomentsOfRandomProgramsAreWhatOneMomentAloneIs) {
  ForEachSeed(SeedsUpTo(3), [](uint32_t seed) {
    EventScript script;
    std::mt19937_64 random(seed);
    std::vector<uint64_t> live;
    for (uint64_t i = 0; i < 8; ++i) script.Alloc(kSegment * (i + 1), 64 * kMiB);
    for (int i = 0; i < 400; ++i) {
      const uint64_t place = kSegment * (random() % 8 + 1) + (random() % 32) * 2 * kMiB;
      const auto known = std::find(live.begin(), live.end(), place);
      if (known != live.end()) {
        script.FreeBlock(place);
        live.erase(known);
      } else {
        script.Block(place, kMiB + random() % kMiB);
        live.push_back(place);
      }
    }
    const Trace trace = script.Build();
    const Examination examination(trace, script.definitions());
    for (const FragmentationMoment& moment : FragmentationHistory(examination, 0, 60)) {
      const Fragmentation alone = FragmentationAfter(examination, 0, moment.step);
      EXPECT_EQ(moment.reserved_bytes, alone.reserved_bytes);
      EXPECT_EQ(moment.allocated_bytes, alone.allocated_bytes);
      EXPECT_EQ(moment.split.pinned, alone.split.pinned);
      EXPECT_EQ(moment.split.releasable, alone.split.releasable);
      EXPECT_EQ(moment.split.sum(), moment.reserved_bytes - moment.allocated_bytes);
    }
  });
}

}  // namespace
}  // namespace gmt::analysis
