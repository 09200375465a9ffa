#include "analysis/leaks/site_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;

class SiteHistoryTest : public ::testing::Test {
 protected:
  void EndCycles(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) grid_.EndCycle();
  }
  SiteHistory::Series Series() const { return site_.SeriesOn(grid_); }

  ChunkGrid grid_;
  SiteHistory site_;
};

TEST_F(SiteHistoryTest, LeastIsTheMinimumOfTheCycle) {
  site_.Birth(grid_, 10);  // cycle 0 began with nothing
  grid_.EndCycle();
  site_.Birth(grid_, 5);
  site_.Free(grid_, 10, 0);
  site_.Birth(grid_, 30);
  grid_.EndCycle();
  grid_.EndCycle();  // nothing happens
  EXPECT_THAT(Series().least, ElementsAre(0, 5, 35));
  EXPECT_EQ(site_.live(), 35u);
  EXPECT_EQ(site_.most(), 35u);
}

TEST_F(SiteHistoryTest, AliveIsCountedByTheCycleOfBirth) {
  site_.Birth(grid_, 10);
  site_.Birth(grid_, 10);
  grid_.EndCycle();
  site_.Birth(grid_, 7);
  grid_.EndCycle();
  site_.Free(grid_, 10, 0);
  grid_.EndCycle();
  EXPECT_THAT(Series().births, ElementsAre(2, 1, 0));
  EXPECT_THAT(Series().alive, ElementsAre(1, 1, 0));
  EXPECT_THAT(Series().alive_bytes, ElementsAre(10, 7, 0));
}

TEST_F(SiteHistoryTest, CycleUnderWayIsNotInTheSeries) {
  EndCycles(2);
  site_.Birth(grid_, 10);
  EXPECT_THAT(Series().births, ElementsAre(0, 0));
}

TEST_F(SiteHistoryTest, ChunksGrowSoThatTheyStayFew) {
  EndCycles(100'000);
  EXPECT_LE(grid_.complete(), ChunkGrid::kMaxChunks);
  EXPECT_GT(grid_.complete(), ChunkGrid::kMaxChunks / 2 - 1);
}

TEST_F(SiteHistoryTest, WhatIsFreedAtOnceAfterManyCyclesIsABurst) {
  for (uint32_t cycle = 0; cycle < 100; ++cycle) {
    site_.Birth(grid_, 10);
    if (cycle % 20 == 19) {
      for (uint32_t born = cycle - 19; born <= cycle; ++born) site_.Free(grid_, 10, born);
    }
    grid_.EndCycle();
  }
  EXPECT_TRUE(site_.bursts().are_usual());
  EXPECT_EQ(site_.bursts().CyclesBetween(), 20u);
}

TEST_F(SiteHistoryTest, CacheThatEvictsHasNoBursts) {
  std::vector<uint32_t> held;
  for (uint32_t cycle = 0; cycle < 200; ++cycle) {
    for (int i = 0; i < 4; ++i) {
      site_.Birth(grid_, 10);
      held.push_back(cycle);
    }
    while (held.size() > 30) {
      const auto oldest = held.begin() + static_cast<std::ptrdiff_t>(cycle * 7 % held.size());
      site_.Free(grid_, 10, *oldest);
      held.erase(oldest);
    }
    grid_.EndCycle();
  }
  EXPECT_FALSE(site_.bursts().are_usual());
}

TEST_F(SiteHistoryTest, UnmatchedFreesAreHarmless) {
  site_.Free(grid_, 10, 0);
  site_.Birth(grid_, 4);
  site_.Free(grid_, 10, 99);  // birth cycle in the future
  EXPECT_EQ(site_.live(), 0u);
  EXPECT_EQ(site_.live_count(), 0u);
}

TEST_F(SiteHistoryTest, HistoryOfHugeSizesStaysDefined) {
  for (int i = 0; i < 4; ++i) site_.Birth(grid_, UINT64_MAX);
  grid_.EndCycle();
  EXPECT_EQ(Series().births.size(), 1u);
}

TEST(LifetimesTest, QuantilesAreRightToWithinAFifth) {
  Lifetimes lifetimes;
  for (uint32_t cycles = 0; cycles < 1000; ++cycles) lifetimes.Add(cycles);
  EXPECT_EQ(lifetimes.CountFrom(3), 997u);
  EXPECT_NEAR(lifetimes.Quantile(0.5, 0), 500, 100);
  EXPECT_NEAR(lifetimes.Quantile(0.95, 0), 950, 190);
  EXPECT_GE(lifetimes.Quantile(1, 0), 999u);
  EXPECT_EQ(lifetimes.Quantile(0.5, 2000), 0u);
  lifetimes.Add(UINT32_MAX);
  EXPECT_GT(lifetimes.Quantile(1, 0), 1u << 30);
}

// Compares with arrays that have one entry per cycle, for random births and frees.
TEST(SiteHistoryOracleTest, ChunksAgreeWithCycles) {
  ForEachSeed(SeedsUpTo(20), [](uint32_t seed) {
    std::mt19937 random(seed);
    struct Block {
      uint64_t size;
      uint32_t born;
    };
    const uint32_t cycles = 1 + random() % 1000;
    ChunkGrid grid;
    SiteHistory site;
    std::vector<Block> held;
    std::vector<double> births(cycles), least(cycles);
    uint64_t live = 0;
    for (uint32_t cycle = 0; cycle < cycles; ++cycle) {
      uint64_t fewest = live;
      for (uint32_t events = random() % 6; events > 0; --events) {
        if (held.empty() || random() % 2 == 0) {
          held.push_back({1 + random() % 1000, cycle});
          site.Birth(grid, held.back().size);
          live += held.back().size;
          ++births[cycle];
        } else {
          const size_t victim = random() % held.size();
          site.Free(grid, held[victim].size, held[victim].born);
          live -= held[victim].size;
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
        }
        fewest = std::min(fewest, live);
      }
      least[cycle] = static_cast<double>(fewest);
      grid.EndCycle();
    }
    const SiteHistory::Series series = site.SeriesOn(grid);
    ASSERT_EQ(series.births.size(), grid.complete());
    for (uint32_t chunk = 0; chunk < grid.complete(); ++chunk) {
      double born = 0, fewest = INFINITY, alive = 0;
      for (uint32_t i = chunk << grid.level(); i < (chunk + 1) << grid.level(); ++i) {
        born += births[i];
        fewest = std::min(fewest, least[i]);
        alive += static_cast<double>(
            std::count_if(held.begin(), held.end(), [&](const Block& b) { return b.born == i; }));
      }
      EXPECT_EQ(series.births[chunk], born);
      EXPECT_EQ(series.least[chunk], fewest);
      EXPECT_EQ(series.alive[chunk], alive);
    }
  });
}

}  // namespace
}  // namespace gmt::analysis
