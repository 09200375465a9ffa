#include "analysis/examination/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> OwnAtEnd(EventScript& script) {
  const Trace trace = script.Build();
  std::vector<uint64_t> bytes;
  for (const OwnBytes& own : OwnBytesAfter(trace, trace.last_step())) bytes.push_back(own.bytes);
  return bytes;
}

TEST(Layers, SegmentOwnsWhatItsBlocksDoNotCover) {
  EventScript script;
  script.Alloc(0x100000, kMiB);
  script.Block(0x100000, 1000);
  script.Block(0x100800, 500);
  EXPECT_THAT(OwnAtEnd(script), ElementsAre(kMiB - 1500, 1000, 500));
}

TEST(Layers, BlockOverSeveralMappingsTakesFromEachPhysicalMemory) {
  EventScript script;
  const uint64_t base = uint64_t{1} << 40;
  for (uint64_t i = 0; i < 3; ++i) {
    script.Create(7 + i, 2 * kMiB);
    script.Map(base + i * 2 * kMiB, 2 * kMiB, 7 + i);
  }
  script.Block(base + kMiB, 2 * kMiB);
  EXPECT_THAT(OwnAtEnd(script), ElementsAre(kMiB, kMiB, 2 * kMiB, 2 * kMiB));
}

TEST(Layers, HandlesAndOtherDevicesDoNotCover) {
  EventScript script;
  script.Alloc(0x1000, 0x1000).device = 1;
  script.Alloc(0x1000, 0x1000).memory = ARRAY;
  script.Block(0x1000, 0x100);
  EXPECT_THAT(OwnAtEnd(script), ElementsAre(0x1000, 0x1000, 0x100));
}

TEST(Layers, RegionsAreInnermostInAnyMemory) {
  EventScript script;
  script.Alloc(0x100000, kMiB);
  script.Region(0x180000, 3000);  // in a driver allocation; written before any block
  script.Block(0x100000, 2000);
  script.Region(0x100100, 500);  // in a block
  EXPECT_THAT(OwnAtEnd(script), ElementsAre(kMiB - 5000, 3000, 1500, 500));
}

TEST(Layers, YoungerOfTwoOverlappingRegionsGetsTheBytes) {
  EventScript script;
  script.Alloc(0x100000, kMiB);
  script.Region(0x100000, 3000);
  script.Region(0x100400, 1000);
  script.Region(0x100000 + 2500, 1000);
  EXPECT_THAT(OwnAtEnd(script), ElementsAre(kMiB - 3500, 1500, 1000, 1000));
}

TEST(Layers, RegionInPinnedMemoryBelongsToTheHost) {
  EventScript script;
  script.Pinned(0x100000, kMiB);
  script.Region(0x100000, 3000).present &= ~uint64_t{format::kHasDevice};
  EXPECT_THAT(OwnAtEnd(script), ElementsAre(kMiB - 3000, 3000));
}

TEST(Layers, AddressesThatWrapAroundAreIgnored) {
  EventScript script;
  script.Alloc(UINT64_MAX - 10, 0x1000);
  script.Block(UINT64_MAX - 5, 0x10);
  EXPECT_THAT(OwnAtEnd(script), ElementsAre(0x1000, 0x10));
}

}  // namespace
}  // namespace gmt::analysis
