#include "collector/events/segments.h"

#include <gtest/gtest.h>

#include "session/record.h"

namespace gmt::collector {
namespace {

using session::LiveValue;
using session::Space;

class SegmentsTest : public ::testing::Test {
 protected:
  void Begin(Space space, uint64_t value, uint64_t size, uint64_t handle = 0) {
    segments_.OnBorn({space, value}, Live(size, handle));
  }
  void End(Space space, uint64_t value, uint64_t handle = 0) {
    segments_.OnEnded({space, value}, Live(0, handle));
  }
  LiveValue Live(uint64_t size, uint64_t handle) {
    LiveValue live;
    live.size = size;
    live.device = 1;
    live.stream = handle;
    live.time_ns = now_ += 10;
    return live;
  }
  uint64_t Now() const { return segments_.OnDevice(1).now; }

  uint64_t now_ = 0;
  Segments segments_;
};

TEST_F(SegmentsTest, MemoryIsASegmentFromItsFirstBlockToItsEnd) {
  for (const uint64_t address : {0x1000u, 0x2000u, 0x3000u})
    Begin(Space::kDevice, address, 0x1000);
  Begin(Space::kBlock, 0x1000, 0x100);
  Begin(Space::kBlock, 0x3f00, 0x100);
  Begin(Space::kBlock, 0x9000, 0x100);
  End(Space::kBlock, 0x1000);
  EXPECT_TRUE(segments_.Contains(0x1000));
  EXPECT_FALSE(segments_.Contains(0x2000));
  EXPECT_TRUE(segments_.Contains(0x3000));
  EXPECT_EQ(Now(), 0x2000u);
  End(Space::kDevice, 0x1000);
  Begin(Space::kDevice, 0x1000, 0x1000);
  EXPECT_FALSE(segments_.Contains(0x1000));
  EXPECT_EQ(Now(), 0x1000u);
}

TEST_F(SegmentsTest, ThePeakIsThatOfTheTimeOfTheAllocation) {
  Begin(Space::kDevice, 0x1000, 0x1000);  // at 10
  Begin(Space::kDevice, 0x2000, 0x1000);  // at 20
  Begin(Space::kBlock, 0x2000, 1);
  Begin(Space::kBlock, 0x1000, 1);
  End(Space::kDevice, 0x1000);
  EXPECT_EQ(segments_.OnDevice(1).peak, 0x2000u);
  EXPECT_EQ(segments_.OnDevice(1).peak_ns, 20u);
}

TEST_F(SegmentsTest, PhysicalMemoryIsASegmentIfItsReservationHoldsABlock) {
  Begin(Space::kReservation, 0x10000, 0x10000);
  for (const uint64_t handle : {1u, 2u, 3u, 4u}) Begin(Space::kPhysical, handle, 0x1000);
  Begin(Space::kMapping, 0x10000, 0x1000, 1);
  Begin(Space::kMapping, 0x11000, 0x1000, 2);
  End(Space::kMapping, 0x11000, 2);
  EXPECT_EQ(Now(), 0u);
  Begin(Space::kBlock, 0x10800, 0x100);
  EXPECT_EQ(Now(), 0x1000u) << "2 is not mapped any more";
  Begin(Space::kMapping, 0x12000, 0x1000, 3);
  EXPECT_EQ(Now(), 0x2000u);
  Begin(Space::kMapping, 0x90000, 0x1000, 4);
  EXPECT_EQ(Now(), 0x2000u) << "4 is mapped elsewhere";
  End(Space::kPhysical, 3);
  EXPECT_EQ(Now(), 0x1000u);
}

}  // namespace
}  // namespace gmt::collector
