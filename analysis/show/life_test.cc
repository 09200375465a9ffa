#include "analysis/show/life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/show/changes.h"
#include "analysis/testing/event_script.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;

class LifeTest : public ::testing::Test {
 protected:
  const Examination& Examined() {
    if (!examination_) {
      trace_ = script_.Build();
      examination_.emplace(trace_, script_.definitions());
    }
    return *examination_;
  }
  Life Of(const std::string& id, size_t buckets = 4) {
    const Categories categories = Categorize(Examined());
    return LifeOf(*examination_, categories,
                  Select(*examination_, categories, {}, *ParseSubject(id)), buckets);
  }

  EventScript script_;
  Trace trace_;
  std::optional<Examination> examination_;
};

TEST_F(LifeTest, PeakIsTheMostHeldAtOneMoment) {
  script_.Alloc(0x1000, 100, {"a"});
  script_.Alloc(0x2000, 50, {"a"});
  script_.Free(0x1000);
  script_.Alloc(0x3000, 20, {"a"});
  const Life life = Of("heap/driver");
  EXPECT_EQ(life.peak_bytes, 150u);
  EXPECT_EQ(life.peak_count, 2u);
  EXPECT_EQ(life.peak_step, 2u);
  EXPECT_EQ(life.peak_t_ns, 2 * EventScript::kStep_ns);
  EXPECT_EQ(life.allocations, 3u);
  EXPECT_EQ(life.frees, 1u);
  EXPECT_EQ(life.held, 2u);
  EXPECT_EQ(life.held_bytes, 70u);
  EXPECT_EQ(life.allocated_bytes, 170u);
}

TEST_F(LifeTest, PartsOfTheTimeHaveTheirMaxima) {
  script_.Alloc(0x1000, 100);  // 1 ms
  script_.Free(0x1000);        // 2 ms
  script_.Alloc(0x2000, 10);   // 3 ms
  for (int i = 0; i < 5; ++i) script_.Mark("tick", 0);
  // 0 to 8 ms: the free at 2 ms is the last event of the first quarter.
  EXPECT_THAT(Of("heap/driver", 4).most_bytes, ElementsAre(100, 10, 10, 10));
  EXPECT_THAT(Of("heap/driver", 1).most_bytes, ElementsAre(100));
}

TEST_F(LifeTest, MemoryFromBeforeIsHeldFromTheBeginning) {
  script_.Free(0x1000, 64);
  const Life life = Of("heap/driver");
  EXPECT_EQ(life.from_before, 1u);
  EXPECT_EQ(life.allocations, 0u);
  EXPECT_EQ(life.peak_bytes, 64u);
  EXPECT_EQ(life.peak_step, 0u);
  EXPECT_EQ(life.lifetimes.count, 0u);
  EXPECT_FALSE(life.first_t_ns.has_value());
}

TEST_F(LifeTest, LifetimesCoverFreedMemory) {
  for (uint64_t i = 0; i < 10; ++i) {
    script_.Alloc(0x1000, 8);
    script_.Free(0x1000);
  }
  script_.Alloc(0x1000, 8);
  for (int i = 0; i < 6; ++i) script_.Mark("tick", 0);
  script_.Free(0x1000);
  const Lifetimes lifetimes = Of("heap/driver").lifetimes;
  EXPECT_EQ(lifetimes.count, 11u);
  EXPECT_EQ(lifetimes.median_ns, 1'000'000u);
  EXPECT_EQ(lifetimes.p90_ns, 1'000'000u);
  EXPECT_EQ(lifetimes.longest_ns, 7'000'000u);
}

TEST_F(LifeTest, StepsOfTheLoopHaveTheirBirthsAndPeaks) {
  script_.Mark("step", 0);
  script_.Alloc(0x1000, 100);
  script_.Free(0x1000);
  script_.Mark("step", 1);
  script_.Alloc(0x1000, 300);
  script_.Mark("step", 2);
  script_.Free(0x1000);
  script_.Mark("step", 3);
  const Life life = Of("heap/driver");
  ASSERT_EQ(life.cycles.size(), 3u);
  EXPECT_EQ(life.cycles[0].peak_bytes, 100u);
  EXPECT_EQ(life.cycles[1].peak_bytes, 300u);
  EXPECT_EQ(life.cycles[1].births, 1u);
  EXPECT_EQ(life.cycles[2].births, 0u);
  EXPECT_EQ(life.cycles[2].frees, 1u);
  EXPECT_EQ(life.lifetimes.same_step, 1u);
  EXPECT_EQ(life.lifetimes.next_step, 1u);
  EXPECT_EQ(life.lifetimes.later_step, 0u);
}

TEST_F(LifeTest, SizesKnowTheMostCommon) {
  for (uint64_t i = 0; i < 3; ++i) script_.Alloc(0x1000 + i * 0x100, 16);
  script_.Alloc(0x9000, 4);
  script_.Alloc(0xa000, 64);
  const LifeSizes sizes = Of("heap/driver").sizes;
  EXPECT_EQ(sizes.smallest, 4u);
  EXPECT_EQ(sizes.biggest, 64u);
  EXPECT_EQ(sizes.distinct, 3u);
  EXPECT_EQ(sizes.most_common, 16u);
  EXPECT_EQ(sizes.most_common_count, 3u);
}

TEST_F(LifeTest, NothingSelectedHasNoLife) {
  script_.Alloc(0x1000, 16);
  const Life life = Of("size/17");
  EXPECT_EQ(life.allocations, 0u);
  EXPECT_TRUE(life.parts.empty());
  EXPECT_TRUE(life.at_peaks.empty());
  EXPECT_THAT(life.most_bytes, ElementsAre(0, 0, 0, 0));
}

TEST_F(LifeTest, EmptyRecordingHasOne) { EXPECT_EQ(Of("heap/driver").peak_bytes, 0u); }

TEST_F(LifeTest, HostileTimesAndSizesDoNotOverflow) {
  script_.Alloc(0x1000, UINT64_MAX).t_ns = INT64_MIN;
  script_.Alloc(0x2000, UINT64_MAX).t_ns = INT64_MAX;
  script_.Free(0x1000).t_ns = INT64_MAX;
  EXPECT_EQ(Of("heap/driver").most_bytes.size(), 4u);
}

// Compares with the slow, obvious way: the state after every step, from the rows.
TEST_F(LifeTest, AgreesWithTheStateAtEveryStep) {
  ForEachSeed({1}, [&](uint32_t seed) {
    script_ = EventScript();
    std::mt19937 random(seed);
    std::vector<uint64_t> held;
    for (int i = 0; i < 400; ++i) {
      if (held.empty() || random() % 5 < 3) {
        const uint64_t address = 0x100000 + static_cast<uint64_t>(i) * 0x1000;
        script_.Alloc(address, 1 + random() % 0x1000, {random() % 3 == 0 ? "a" : "b"});
        held.push_back(address);
      } else {
        const size_t which = random() % held.size();
        script_.Free(held[which]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    const uint32_t stack = script_.Stack({"a"});
    const Life life = Of("stack/" + std::to_string(stack));
    uint64_t peak = 0;
    for (Step step = 0; step <= trace_.last_step(); ++step) {
      uint64_t live = 0;
      for (RowId row = 0; row < trace_.rows.count(); ++row) {
        if (trace_.rows.stack[row] == stack && trace_.rows.HeldAfter(row, step))
          live += trace_.rows.size[row];
      }
      peak = std::max(peak, live);
    }
    EXPECT_EQ(life.peak_bytes, peak);
    EXPECT_EQ(life.peak_bytes, *std::max_element(life.most_bytes.begin(), life.most_bytes.end()));
    EXPECT_EQ(life.from_before + life.allocations, life.frees + life.held);
  });
}

TEST_F(LifeTest, ChangesOfAStepAddUpToItsGrowth) {
  ForEachSeed({1}, [&](uint32_t seed) {
    script_ = EventScript();
    std::mt19937 random(seed);
    std::vector<uint64_t> held;
    for (uint64_t step = 0; step < 6; ++step) {
      script_.Mark("step", step);
      for (int i = 0; i < 40; ++i) {
        const uint64_t address = 0x100000 + (step * 100 + static_cast<uint64_t>(i)) * 0x1000;
        script_.Alloc(address, 1 + random() % 0x1000, {"f" + std::to_string(random() % 4)});
        held.push_back(address);
        if (random() % 2 == 0) {
          script_.Free(held.back());
          held.pop_back();
        }
      }
    }
    const Cycles& cycles = Examined().cycles();
    ASSERT_EQ(cycles.cycles.size(), 5u);
    for (size_t i = 1; i < cycles.cycles.size(); ++i) {
      int64_t sum = 0;
      for (const StackChange& change :
           ChangesBetween(trace_, 0, cycles.cycles[i - 1].end, cycles.cycles[i].end)) {
        sum += change.bytes();
      }
      const CycleUse& use = cycles.devices[0].cycles[i];
      EXPECT_EQ(sum, static_cast<int64_t>(use.live_end - use.live_begin));
    }
  });
}

}  // namespace
}  // namespace gmt::analysis
