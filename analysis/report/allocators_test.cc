#include "analysis/report/allocators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

class AllocatorsTest : public ::testing::Test {
 protected:
  // Returns name, live bytes at the end and peak bytes of the allocators on `device`.
  std::vector<std::tuple<std::string, uint64_t, uint64_t>> Uses(int32_t device = 0) {
    const Trace trace = script_.Build();
    const Examination examination(trace, script_.definitions());
    std::vector<std::tuple<std::string, uint64_t, uint64_t>> uses;
    for (const AllocatorUse& use :
         FindAllocators(trace, examination.kinds(), script_.definitions(), examination.rules(),
                        {{device, trace.last_step()}}))
      uses.emplace_back(use.name, use.live_bytes, use.peak_bytes);
    return uses;
  }
  Room RoomAtEnd() {
    const Trace trace = script_.Build();
    const Examination examination(trace, script_.definitions());
    return RoomAfter(examination, 0, trace.last_step());
  }

  EventScript script_;
};

TEST_F(AllocatorsTest, EachByteBelongsToTheAllocatorThatWasCalled) {
  script_.Alloc(0x100000000, 8 * kMiB);  // a segment
  script_.Block(0x100000000, 3 * kMiB);
  script_.Block(0x100000000 + 4 * kMiB, 2 * kMiB);
  script_.FreeBlock(0x100000000);
  script_.Alloc(0x200000000, 4 * kMiB);
  script_.Alloc(0x300000000, kMiB).memory = POOL;
  script_.Alloc(0x400000000, kMiB / 2).memory = MANAGED;
  script_.Alloc(0x500000000, kMiB / 4).memory = VMM;
  EXPECT_THAT(Uses(), ElementsAre(FieldsAre("caching allocator (pytorch)", 2 * kMiB, 5 * kMiB),
                                  FieldsAre("cudaMalloc", 4 * kMiB, 4 * kMiB),
                                  FieldsAre("cudaMallocAsync", kMiB, kMiB),
                                  FieldsAre("cudaMallocManaged", kMiB / 2, kMiB / 2),
                                  FieldsAre("cuMemCreate", kMiB / 4, kMiB / 4)));
}

TEST_F(AllocatorsTest, PinnedMemoryBelongsToTheHost) {
  script_.Alloc(0x100000000, kMiB);
  script_.Pinned(0x9000, 2 * kMiB);
  EXPECT_THAT(Uses(kHostDevice), ElementsAre(FieldsAre("pinned memory", 2 * kMiB, 2 * kMiB)));
}

TEST_F(AllocatorsTest, BlocksOfAPrivatePoolAreSeparate) {
  script_.Alloc(0x100000000, 8 * kMiB);
  format::Event& block = script_.Block(0x100000000, kMiB);
  block.pool = 7;
  block.present |= format::kHasPool;
  script_.Block(0x100000000 + 4 * kMiB, 2 * kMiB);
  EXPECT_THAT(Uses(), ElementsAre(FieldsAre("caching allocator (pytorch)", 2 * kMiB, 2 * kMiB),
                                  FieldsAre("private pools (pytorch)", kMiB, kMiB)));
}

TEST_F(AllocatorsTest, RoomIsDriverMemoryPlusReleasableCache) {
  script_.Sample(300 * kMiB, 1000 * kMiB);  // 700 free
  script_.Alloc(0x100000000, 100 * kMiB);
  script_.Block(0x100000000, 40 * kMiB);
  script_.Alloc(0x200000000, 50 * kMiB);
  script_.Block(0x200000000, 50 * kMiB);
  script_.FreeBlock(0x200000000);
  const Room room = RoomAtEnd();
  EXPECT_EQ(room.free_bytes, 550 * kMiB);
  EXPECT_EQ(room.largest_cached_bytes, 60 * kMiB);
  EXPECT_EQ(room.releasable_bytes, 50 * kMiB);
  EXPECT_EQ(room.largest_request(), 600 * kMiB);
}

TEST_F(AllocatorsTest, WithoutASampleOnlyTheCacheIsKnown) {
  script_.Alloc(0x100000000, 100 * kMiB);
  script_.Block(0x100000000, 40 * kMiB);
  const Room room = RoomAtEnd();
  EXPECT_EQ(room.free_bytes, std::nullopt);
  EXPECT_EQ(room.largest_request(), 60 * kMiB);
}

}  // namespace
}  // namespace gmt::analysis
