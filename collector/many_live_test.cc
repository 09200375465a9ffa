// More live allocations than the live table's first level holds. After a loss, the live set is
// taken from all levels and is exact.

#include <gtest/gtest.h>

#include <map>

#include "collector/testing/collector_fixture.h"

namespace gmt::collector {
namespace {

constexpr uint64_t kMany = 300000;

uint64_t AddressOf(uint64_t n) { return 0x7f0000000000 + n * 512; }

// A ring that holds only a fraction of the events, with the live table of a real session.
session::SessionSizes ShortRing() {
  session::SessionSizes sizes = FakeTarget::SmallSizes();
  sizes.ring = 1 << 14;
  sizes.live = session::SessionSizes().live;
  sizes.live_levels = session::SessionSizes().live_levels;
  return sizes;
}

class ManyLiveTest : public CollectorTest {
 protected:
  void Alloc(uint64_t n) {
    target_.Alloc(AddressOf(n), n + 1);
    truth_[AddressOf(n)] = n + 1;
  }
  void Free(uint64_t n) {
    target_.Free(AddressOf(n));
    truth_.erase(AddressOf(n));
  }
  void ExpectTruth(const Recording& recording) {
    ASSERT_TRUE(recording.status.ok()) << recording.status;
    const gmt::Snapshot& exit = recording.snapshots.back();
    EXPECT_TRUE(exit.exact()) << exit.inexact_because();
    EXPECT_EQ(exit.losses().live_full(), 0u);
    EXPECT_GT(exit.losses().overrun(), 0u) << "no event was lost";
    EXPECT_TRUE(Recording::LiveOf(exit) == truth_);
    EXPECT_TRUE(recording.LiveByEvents() == truth_) << "the events do not yield the live set";
  }

  FakeTarget target_{ShortRing()};
  std::map<uint64_t, uint64_t> truth_;
};

TEST_F(ManyLiveTest, LateCollectorHasAllAllocations) {
  for (uint64_t n = 0; n < kMany; ++n) Alloc(n);
  EXPECT_EQ(target_.control().live_levels.load(), 1u);
  Start(target_);
  ExpectTruth(ExitAndRead(target_));
}

TEST_F(ManyLiveTest, LappedReaderIsExactAgainAfterAllocationsAndFreesInAllLevels) {
  Start(target_);
  for (uint64_t n = 0; n < kMany; ++n) Alloc(n);
  ReadAll();
  for (uint64_t n = 0; n < kMany; n += 3) Free(n);
  for (uint64_t n = kMany; n < kMany + 50000; ++n) Alloc(n);
  ReadAll();
  for (uint64_t n = 1; n < kMany; n += 3) Free(n);
  ExpectTruth(ExitAndRead(target_));
}

TEST_F(ManyLiveTest, FullTableIsCountedAndMakesTheLiveSetInexact) {
  target_.control().live_levels.store(session::kLiveGrowthEnded);  // as on a full file system
  for (uint64_t n = 0; n < 100000; ++n) Alloc(n);
  Start(target_);
  const Recording recording = ExitAndRead(target_);
  const gmt::Snapshot& exit = recording.snapshots.back();
  EXPECT_FALSE(exit.exact());
  EXPECT_EQ(exit.inexact_because(), "events were lost and the table of live allocations was full");
  EXPECT_GE(exit.losses().live_full(), 100000u - session::SessionSizes().live);
}

}  // namespace
}  // namespace gmt::collector
