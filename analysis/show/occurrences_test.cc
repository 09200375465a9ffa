#include "analysis/show/occurrences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

TEST(OccurrencesTest, RangeHasTheBytesHeldInIt) {
  EventScript script;
  script.Alloc(0x1000, 10);
  script.Begin("epoch", 1);
  script.Alloc(0x2000, 100);
  script.Free(0x2000);
  script.Alloc(0x3000, 5);
  script.End("epoch", 1);
  script.Alloc(0x4000, 1000);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  const Occurrences found = FindOccurrences(examination, "epoch");
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_TRUE(found.is_range);
  EXPECT_TRUE(found.all[0].whole);
  EXPECT_EQ(found.all[0].live_begin, 10u);
  EXPECT_EQ(found.all[0].peak, 110u);
  EXPECT_EQ(found.all[0].change(), 5);
}

TEST(OccurrencesTest, BlocksCountInsteadOfSegments) {
  EventScript script;
  script.Alloc(0x100000, 1000);  // a segment, held all the time
  script.Block(0x100000, 100);
  script.Begin("epoch", 1);
  script.Block(0x100200, 300);
  script.FreeBlock(0x100000);
  script.End("epoch", 1);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  const Occurrences found = FindOccurrences(examination, "epoch");
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_EQ(found.all[0].change(), 200);
  EXPECT_EQ(found.all[0].peak, 400u);
}

TEST(OccurrencesTest, MarkLastsUntilTheNextOfItsName) {
  EventScript script;
  script.Mark("tick", 7);
  script.Alloc(0x1000, 10);
  script.Mark("other", 0);
  script.Mark("tick", 8);
  script.Alloc(0x2000, 1);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  const Occurrences found = FindOccurrences(examination, "tick");
  ASSERT_EQ(found.all.size(), 2u);
  EXPECT_EQ(found.all[0].index, 7u);
  EXPECT_TRUE(found.all[0].whole);
  EXPECT_EQ(found.all[0].change(), 10);
  EXPECT_FALSE(found.all[1].whole);
  EXPECT_EQ(found.all[1].peak, 11u);
}

TEST(OccurrencesTest, RangeThatIsOpenAtTheEndIsNotWhole) {
  EventScript script;
  script.Begin("epoch", 1);
  script.Alloc(0x1000, 10);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  const Occurrences found = FindOccurrences(examination, "epoch");
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_FALSE(found.all[0].whole);
  EXPECT_EQ(found.all[0].live_end, 10u);
}

TEST(OccurrencesTest, UnusedNameIsNotFound) {
  EventScript script;
  script.Alloc(0x1000, 10);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  EXPECT_TRUE(FindOccurrences(examination, "epoch").all.empty());
}

// Compares with a walk over each range.
TEST(OccurrencesTest, PeakOfLongNestedRangesIsFound) {
  ForEachSeed({1}, [](uint32_t seed) {
    EventScript script;
    std::mt19937 random(seed);
    std::vector<uint64_t> open;
    uint64_t next = 0;
    for (int i = 0; i < 6000; ++i) {
      script.Alloc(0x1000 + static_cast<uint64_t>(i) * 0x1000, 1 + random() % 500);
      if (random() % 2 == 0) script.Free(0x1000 + static_cast<uint64_t>(i) * 0x1000);
      if (random() % 60 == 0) script.Begin("r", open.emplace_back(++next));
      if (!open.empty() && random() % 90 == 0) {
        script.End("r", open.back());
        open.pop_back();
      }
    }
    const Trace trace = script.Build();
    const Examination examination(trace, script.definitions());
    std::vector<uint64_t> live = {0};
    for (const StepRecord step : trace.steps) {
      const uint64_t bytes = trace.rows.size[step.row];
      live.push_back(step.is_death ? live.back() - bytes : live.back() + bytes);
    }
    const Occurrences found = FindOccurrences(examination, "r");
    ASSERT_GT(found.all.size(), 50u);
    for (const Occurrence& one : found.all) {
      EXPECT_EQ(one.peak, *std::max_element(live.begin() + one.begin, live.begin() + one.end + 1));
    }
  });
}

}  // namespace
}  // namespace gmt::analysis
