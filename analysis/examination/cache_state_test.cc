#include "analysis/examination/cache_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class CacheStateTest : public ::testing::Test {
 protected:
  std::vector<PoolState> AtEnd(int32_t device = 0) {
    const Trace trace = script_.Build();
    std::vector<PoolState> pools = PoolsAfter(trace, device, trace.last_step());
    for (const PoolState& p : pools) {
      EXPECT_EQ(p.allocated + p.pending + p.releasable + p.pinned, p.reserved);
    }
    return pools;
  }
  EventScript script_;
};

TEST_F(CacheStateTest, WithoutBlocksThereIsNoPool) {
  script_.Alloc(0x1000000, 20 * kMiB);
  EXPECT_THAT(AtEnd(), IsEmpty());
}

TEST_F(CacheStateTest, CacheIsReleasableIfItsSegmentHasNoBlock) {
  script_.Alloc(0x10000000, 20 * kMiB);
  script_.Block(0x10000000, 4 * kMiB);
  script_.Alloc(0x20000000, 30 * kMiB);
  script_.Block(0x20000000, 30 * kMiB);
  script_.FreeBlock(0x20000000);
  script_.Alloc(0x40000000, 2 * kMiB);
  script_.Block(0x40000000, 512);
  const auto pools = AtEnd();
  ASSERT_THAT(pools, SizeIs(2));
  EXPECT_EQ(pools[0].kind, PoolState::kSmall);
  EXPECT_EQ(pools[0].allocated, 512u);
  EXPECT_EQ(pools[1].kind, PoolState::kLarge);
  EXPECT_EQ(pools[1].segments, 2u);
  EXPECT_EQ(pools[1].blocks, 1u);
  EXPECT_EQ(pools[1].releasable, 30 * kMiB);
  EXPECT_EQ(pools[1].pinned, 16 * kMiB);
}

TEST_F(CacheStateTest, BlockThatAwaitsAStreamIsNeitherLiveNorCached) {
  script_.Alloc(0x10000000, 20 * kMiB);
  script_.Block(0x10000000, 4 * kMiB);
  script_.Block(0x10400000, 512);
  script_.RecordEvent(1, 7);
  script_.FreeBlock(0x10400000);
  script_.EventDone(1);
  script_.RecordEvent(1, 7);
  script_.FreeBlock(0x10000000);
  const auto pools = AtEnd();
  EXPECT_EQ(pools[0].pending, 4 * kMiB);
  EXPECT_EQ(pools[0].allocated, 0u);
  EXPECT_EQ(pools[0].pinned, 16 * kMiB);
}

TEST_F(CacheStateTest, PagesOfAnExpandableSegmentAreReleasableOneByOne) {
  constexpr uint64_t kAt = uint64_t{1} << 40;
  script_.Reserve(kAt, uint64_t{1} << 36);
  for (uint64_t page = 0; page < 3; ++page) {
    script_.Create(page + 1, 20 * kMiB);
    script_.Map(kAt + page * 20 * kMiB, 20 * kMiB, page + 1);
  }
  script_.Block(kAt, 30 * kMiB);
  const auto pools = AtEnd();
  ASSERT_THAT(pools, SizeIs(1));
  EXPECT_EQ(pools[0].segments, 3u);
  EXPECT_EQ(pools[0].blocks, 1u);
  EXPECT_EQ(pools[0].pinned, 10 * kMiB);
  EXPECT_EQ(pools[0].releasable, 20 * kMiB);
}

TEST_F(CacheStateTest, EarlierStateIsThatOfItsStep) {
  script_.Alloc(0x10000000, 20 * kMiB);
  script_.Block(0x10000000, 4 * kMiB);
  script_.FreeBlock(0x10000000);
  const Trace trace = script_.Build();
  EXPECT_EQ(PoolsAfter(trace, 0, 2)[0].allocated, 4 * kMiB);
  EXPECT_EQ(PoolsAfter(trace, 0, 3)[0].releasable, 20 * kMiB);
  EXPECT_THAT(PoolsAfter(trace, 1, 3), IsEmpty());
}

// Random blocks in random segments, compared with a table of 1 MiB pages.
TEST_F(CacheStateTest, RandomStatesMatchATableOfPages) {
  ForEachSeed(SeedsUpTo(5), [&](uint32_t seed) {
    script_ = EventScript();
    std::mt19937 random(seed);
    std::vector<std::vector<int>> segments;  // pages: -1 free, otherwise the block
    for (int i = 0; i < 20; ++i) {
      const size_t pages = 4 + random() % 30;
      const uint64_t base = uint64_t(i + 1) << 32;
      script_.Alloc(base, pages * kMiB);
      auto& table = segments.emplace_back(pages, -1);
      script_.Block(base, kMiB);  // makes it a segment
      if (random() % 3 == 0) {
        script_.FreeBlock(base);
      } else {
        table[0] = 0;
      }
      for (size_t page = 1; page + 4 < pages; page += 4) {
        if (random() % 2 == 0) continue;
        script_.Block(base + page * kMiB, 3 * kMiB);
        std::fill_n(table.begin() + static_cast<std::ptrdiff_t>(page), 3, 1);
      }
    }
    PoolState expected;
    for (const auto& table : segments) {
      const auto used = static_cast<uint64_t>(
          std::count_if(table.begin(), table.end(), [](int page) { return page >= 0; }));
      expected.reserved += table.size() * kMiB;
      expected.allocated += used * kMiB;
      (used == 0 ? expected.releasable : expected.pinned) += (table.size() - used) * kMiB;
    }
    const auto pools = AtEnd();
    ASSERT_THAT(pools, SizeIs(1));
    EXPECT_EQ(pools[0].reserved, expected.reserved);
    EXPECT_EQ(pools[0].allocated, expected.allocated);
    EXPECT_EQ(pools[0].releasable, expected.releasable);
    EXPECT_EQ(pools[0].pinned, expected.pinned);
  });
}

}  // namespace
}  // namespace gmt::analysis
