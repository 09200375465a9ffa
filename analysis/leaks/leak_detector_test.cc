#include "analysis/leaks/leak_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeakDetectorTest : public ::testing::Test {
 protected:
  LeakDetector::Site Site(uint32_t stack, uint64_t size = 0) {
    return detector_.SiteOf({0, 2, stack, 0, 0}, size);
  }
  void Birth(uint32_t stack, uint64_t size) { detector_.OnBirth(Site(stack, size), size); }
  void Free(uint32_t stack, uint64_t size, uint32_t born) {
    detector_.OnFree(Site(stack, size), size, born);
  }
  // Runs `cycle` the given number of times, passing the cycle's number.
  template <typename Cycle>
  void Run(uint32_t cycles, Cycle cycle) {
    for (uint32_t i = 0; i < cycles; ++i) {
      cycle(detector_.cycle());
      detector_.OnCycleEnd();
    }
  }
  SiteVerdict Only() const {
    const std::vector<SiteGrowth> grown = detector_.Evaluate();
    EXPECT_THAT(grown, SizeIs(1));
    return grown.empty() ? SiteVerdict() : grown.front().verdict;
  }
  // Keeps `length` blocks of one size.
  auto Queue(uint32_t length) {
    return [this, length](uint32_t cycle) {
      Birth(1, 4096);
      if (cycle >= length) Free(1, 4096, cycle - length);
    };
  }

  LeakDetector detector_;
};

TEST_F(LeakDetectorTest, BlockKeptOfEveryCycleIsALeakOfItsSize) {
  Run(400, [&](uint32_t) { Birth(1, 4096); });
  const SiteVerdict verdict = Only();
  EXPECT_EQ(verdict.growth, Growth::kSurvivors);
  EXPECT_TRUE(verdict.certain);
  EXPECT_DOUBLE_EQ(verdict.bytes_per_cycle.slope, 4096);
  EXPECT_EQ(verdict.bytes, 400u * 4096);
  EXPECT_EQ(verdict.count, 400u);
  EXPECT_EQ(verdict.onset, 0);
}

TEST_F(LeakDetectorTest, OneKeptBlockIsFoundAmongFreedOnes) {
  Run(400, [&](uint32_t cycle) {
    for (int i = 0; i < 20; ++i) Birth(1, 512);
    for (int i = 0; i < 19; ++i) Free(1, 512, cycle);
  });
  EXPECT_DOUBLE_EQ(Only().bytes_per_cycle.slope, 512);
}

TEST_F(LeakDetectorTest, FullQueueIsNotALeak) {
  Run(400, Queue(60));
  const SiteVerdict verdict = Only();
  EXPECT_EQ(verdict.growth, Growth::kQueue);
  EXPECT_NEAR(verdict.lifetime, 60, 12);
  EXPECT_EQ(verdict.count, 60u);
  EXPECT_NEAR(verdict.end, 60, 8);
}

TEST_F(LeakDetectorTest, FillingQueueCannotBeDistinguishedFromALeak) {
  Run(200, Queue(600));
  EXPECT_EQ(Only().growth, Growth::kSurvivors);
  Run(600, Queue(600));
  EXPECT_EQ(Only().growth, Growth::kQueue);
}

TEST_F(LeakDetectorTest, QueueFullBeforeTheRecordingIsRecognisedByItsFrees) {
  Run(200, [&](uint32_t) {
    Birth(1, 4096);
    detector_.OnFreeOfUnknown(0, 2, 4096);
  });
  EXPECT_EQ(Only().growth, Growth::kFromBefore);
}

TEST_F(LeakDetectorTest, FreesOfOtherSizesFromBeforeExcuseNothing) {
  Run(200, [&](uint32_t) {
    Birth(1, 4096);
    detector_.OnFreeOfUnknown(0, 2, 8192);
    detector_.OnFreeOfUnknown(1, 2, 4096);
    detector_.OnFreeOfUnknown(0, 0, 4096);
  });
  EXPECT_EQ(Only().growth, Growth::kSurvivors);
}

TEST_F(LeakDetectorTest, GrowingTensorIsALeakAlthoughOnlyOneIsHeld) {
  Run(400, [&](uint32_t cycle) {
    Birth(1, (cycle + 1) * 1000);
    if (cycle > 0) Free(1, cycle * 1000, cycle - 1);
  });
  const SiteVerdict verdict = Only();
  EXPECT_EQ(verdict.growth, Growth::kRegrown);
  EXPECT_NEAR(verdict.bytes_per_cycle.slope, 1000, 1);
}

TEST_F(LeakDetectorTest, OccasionallyGrowingBufferIsNotALeak) {
  uint64_t most = 0;
  uint32_t born = 0;
  Run(400, [&](uint32_t cycle) {
    const uint64_t size = 1000 + cycle * 7919 % 4001;
    if (size <= most) return;
    Birth(1, size);
    if (most > 0) Free(1, most, born);
    most = size;
    born = cycle;
  });
  EXPECT_FALSE(Only().is_leak());
}

TEST_F(LeakDetectorTest, CacheFillingAtADecreasingRateIsNotALeak) {
  double due = 0;
  Run(400, [&](uint32_t cycle) {
    for (due += 3 * std::exp(-static_cast<double>(cycle) / 90); due >= 1; --due) Birth(1, 512);
  });
  EXPECT_FALSE(Only().is_leak());
}

TEST_F(LeakDetectorTest, StateCreatedOnceIsNotALeak) {
  Run(400, [&](uint32_t cycle) {
    for (int i = 0; cycle == 230 && i < 50; ++i) Birth(1, 512);
  });
  const SiteVerdict verdict = Only();
  EXPECT_EQ(verdict.growth, Growth::kOnce);
  EXPECT_EQ(verdict.onset, 230);
}

TEST_F(LeakDetectorTest, GrowthThatEndedIsNotALeak) {
  Run(400, [&](uint32_t cycle) {
    if (cycle >= 50 && cycle < 300) Birth(1, 512);
  });
  const SiteVerdict verdict = Only();
  EXPECT_EQ(verdict.growth, Growth::kEnded);
  EXPECT_EQ(verdict.onset, 50);
  EXPECT_NEAR(verdict.end, 290, 10);
}

TEST_F(LeakDetectorTest, LeakThatBeganMidwayHasItsOwnRate) {
  Run(400, [&](uint32_t cycle) {
    if (cycle >= 200) Birth(1, 512);
  });
  const SiteVerdict verdict = Only();
  EXPECT_TRUE(verdict.is_leak() && verdict.certain);
  EXPECT_NEAR(verdict.onset, 200, 4);
  EXPECT_DOUBLE_EQ(verdict.bytes_per_cycle.slope, 512);
}

TEST_F(LeakDetectorTest, RecentLeakIsNotCertain) {
  Run(400, [&](uint32_t cycle) {
    if (cycle >= 370) Birth(1, 512);
  });
  EXPECT_TRUE(Only().is_leak());
  EXPECT_FALSE(Only().certain);
}

TEST_F(LeakDetectorTest, WithoutAStackSizesDistinguishSites) {
  Run(400, [&](uint32_t cycle) {
    Birth(0, 1 << 20);
    Free(0, 1 << 20, cycle);
    Birth(0, 512);
  });
  const std::vector<SiteGrowth> grown = detector_.Evaluate();
  ASSERT_THAT(grown, SizeIs(1));
  EXPECT_EQ(grown[0].min_size, 512u);
  EXPECT_TRUE(grown[0].verdict.is_leak());
}

TEST_F(LeakDetectorTest, DevicesMinimaGrowByTheLeakedBytes) {
  detector_.OnHeldBefore(0, 1 << 20);
  Run(400, [&](uint32_t cycle) {
    Birth(1, 4096);
    Birth(2, 65536);
    Free(2, 65536, cycle);
  });
  const std::vector<DeviceMinima> minima = detector_.Minima();
  ASSERT_THAT(minima, SizeIs(1));
  EXPECT_DOUBLE_EQ(minima[0].bytes_per_cycle.slope, Only().bytes_per_cycle.slope);
  EXPECT_EQ(minima[0].least.back(), (1 << 20) + 4096.0 * 396);
}

TEST_F(LeakDetectorTest, SitesAreBounded) {
  for (uint32_t stack = 1; stack <= LeakDetector::kMaxSites + 1000; ++stack) Birth(stack, 512);
  EXPECT_LE(detector_.sites(), LeakDetector::kMaxSites + 1);
}

TEST_F(LeakDetectorTest, WithoutEventsNothingIsFound) {
  EXPECT_THAT(detector_.Evaluate(), IsEmpty());
  EXPECT_THAT(detector_.Minima(), IsEmpty());
  detector_.OnFreeOfUnknown(0, 2, UINT64_MAX);
  detector_.OnCycleEnd();
  EXPECT_THAT(detector_.Evaluate(), IsEmpty());
}

}  // namespace
}  // namespace gmt::analysis
