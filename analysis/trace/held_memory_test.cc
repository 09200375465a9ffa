#include "analysis/trace/held_memory.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::analysis {
namespace {

using format::Event;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kBlockHeap = 2, kRefused = 1;

// Writes down what is reported. Ids count births from 0.
class HeldMemoryTest : public testing::Test, protected HeldMemory::Listener {
 protected:
  Event Of(Kind kind, Memory memory, uint64_t address, uint64_t size) {
    Event event;
    event.kind = kind;
    event.memory = memory;
    event.address = address;
    event.size = size;
    return event;
  }
  void Alloc(uint64_t address, uint64_t size) {
    held_.Alloc(Of(ALLOC, DEVICE, address, size), kDriverHeap, *this);
  }
  void Free(uint64_t address) { held_.Free(Of(FREE, DEVICE, address, 0), kDriverHeap, *this); }
  void FreeDone(uint64_t address, uint32_t result) {
    Event event = Of(FREE_DONE, DEVICE, address, 0);
    event.present |= format::kHasResult;
    event.result = result;
    held_.FreeDone(event, kDriverHeap, *this);
  }
  void Block(uint64_t address, uint64_t size) {
    held_.Alloc(Of(ALLOC, BLOCK, address, size), kBlockHeap, *this);
  }
  void Create(uint64_t handle, uint64_t size) {
    Event event = Of(CREATE, VMM, 0, size);
    event.handle = handle;
    held_.Alloc(event, kDriverHeap, *this);
  }
  void ReleaseHandle(uint64_t handle) {
    Event event = Of(RELEASE, VMM, 0, 0);
    event.handle = handle;
    held_.Free(event, kDriverHeap, *this);
  }
  void Map(uint64_t address, uint64_t size, uint64_t handle) {
    Event event = Of(MAP, VMM, address, size);
    event.present |= format::kHasHandle;
    event.handle = handle;
    held_.Map(event, *this);
  }
  void Unmap(uint64_t address, uint64_t size) { held_.Unmap(Of(UNMAP, VMM, address, size), *this); }
  void ResetDevice(uint32_t device) {
    Event event = Of(CONTEXT_RESET, MEMORY_UNSPECIFIED, 0, 0);
    event.present |= format::kHasDevice;
    event.device = device;
    held_.Reset(event, *this);
  }
  // Returns what was reported since the last call.
  std::vector<std::string> Reported() { return std::exchange(reported_, {}); }

  HeldId OnBorn(const Event& /*event*/, const MemoryPlace& /*place*/) override {
    reported_.push_back(absl::StrCat("born ", next_));
    return next_++;
  }
  void OnEnded(HeldId id, HeldMemory::End end, const Event& /*event*/) override {
    reported_.push_back(
        absl::StrCat(end == HeldMemory::End::kFreeLost ? "free lost " : "ended ", id));
  }
  bool OnRestored(HeldId id, const MemoryPlace& /*place*/) override {
    reported_.push_back(absl::StrCat("restored ", id));
    return remembers_;
  }
  void OnSegment(HeldId id) override { reported_.push_back(absl::StrCat("segment ", id)); }
  void OnUnbacked(HeldId id) override { reported_.push_back(absl::StrCat("unbacked ", id)); }
  HeldId OnFreeOfUnknown(const Event& /*event*/) override {
    reported_.emplace_back("free of unknown");
    return kNoHeld;
  }
  void OnUnmapped(const HeldMemory::Mapping& mapping, HeldMemory::End /*end*/,
                  const Event& /*event*/) override {
    reported_.push_back(absl::StrCat("unmapped ", mapping.physical));
  }

  HeldMemory held_;
  HeldId next_ = 0;
  bool remembers_ = true;
  std::vector<std::string> reported_;
};

TEST_F(HeldMemoryTest, AllocationAtAHeldAddressEndsTheOldOne) {
  Alloc(0x1000, 512);
  Alloc(0x1000, 256);
  Free(0x1000);
  EXPECT_THAT(Reported(), ElementsAre("born 0", "free lost 0", "born 1", "ended 1"));
}

TEST_F(HeldMemoryTest, FailedCallsAndForeignMemoryChangeNothing) {
  Event failed = Of(ALLOC, DEVICE, 0x1000, 512);
  failed.present |= format::kHasResult;
  failed.result = 2;
  EXPECT_EQ(held_.Alloc(failed, kDriverHeap, *this), kNoHeld);
  EXPECT_EQ(held_.Alloc(Of(ALLOC, IPC, 0x1000, 512), kDriverHeap, *this), kNoHeld);
  EXPECT_THAT(Reported(), IsEmpty());
}

TEST_F(HeldMemoryTest, RefusedFreeIsTakenBack) {
  Alloc(0x1000, 512);
  Free(0x1000);
  FreeDone(0x1000, kRefused);
  EXPECT_EQ(held_.Find({0x1000, kDeviceSpace}), 0u);
  Free(0x1000);
  FreeDone(0x1000, 0);
  FreeDone(0x1000, kRefused);  // no free is in progress
  EXPECT_THAT(Reported(), ElementsAre("born 0", "ended 0", "restored 0", "ended 0"));
}

TEST_F(HeldMemoryTest, RefusedFreeOfForgottenMemoryRemainsFreed) {
  remembers_ = false;
  Alloc(0x1000, 512);
  Free(0x1000);
  FreeDone(0x1000, kRefused);
  EXPECT_FALSE(held_.Contains({0x1000, kDeviceSpace}));
}

TEST_F(HeldMemoryTest, RefusedFreeOfAnAddressInUseAgainIsIgnored) {
  Alloc(0x1000, 512);
  Free(0x1000);
  Alloc(0x1000, 512);
  FreeDone(0x1000, kRefused);
  EXPECT_THAT(Reported(), ElementsAre("born 0", "ended 0", "born 1"));
}

TEST_F(HeldMemoryTest, PhysicalMemoryIsHeldUntilReleasedAndUnmapped) {
  Create(7, 4096);
  Map(0x10000, 4096, 7);
  ReleaseHandle(7);
  EXPECT_THAT(Reported(), ElementsAre("born 0"));
  Unmap(0x10000, 4096);
  EXPECT_THAT(Reported(), ElementsAre("ended 0", "unmapped 0"));
}

TEST_F(HeldMemoryTest, OneCallUnmapsAdjacentMappings) {
  Create(7, 4096);
  Create(8, 4096);
  Map(0x10000, 4096, 7);
  Map(0x11000, 4096, 8);
  Unmap(0x10000, 8192);
  EXPECT_THAT(Reported(), ElementsAre("born 0", "born 1", "unmapped 0", "unmapped 1"));
}

TEST_F(HeldMemoryTest, HandleThatIsUsedAgainWhileMappedLeavesItsMappingsWithoutMemory) {
  Create(7, 4096);
  Map(0x10000, 4096, 7);
  Create(7, 4096);
  Block(0x10000, 512);  // must not make a segment of memory that has ended
  Unmap(0x10000, 4096);
  EXPECT_THAT(Reported(), ElementsAre("born 0", "free lost 0", "born 1", "born 2", "unbacked 2",
                                      absl::StrCat("unmapped ", kNoHeld)));
}

TEST_F(HeldMemoryTest, BlockMakesItsDriverMemoryASegment) {
  Alloc(0x1000, 4096);
  Block(0x1000, 512);
  Block(0x1200, 512);
  Block(0x9000, 512);
  EXPECT_THAT(Reported(),
              ElementsAre("born 0", "born 1", "segment 0", "born 2", "born 3", "unbacked 3"));
}

TEST_F(HeldMemoryTest, BlocksFollowEveryChangeOfTheSegmentsAroundThem) {
  const auto block = [&](uint64_t address) {
    Block(address, 512);
    held_.Free(Of(FREE, BLOCK, address, 0), kBlockHeap, *this);
    std::erase_if(reported_, [](const std::string& what) {
      return !what.starts_with("segment") && !what.starts_with("unbacked");
    });
  };
  Alloc(0x10000, 0x4000);
  block(0x11000);
  EXPECT_THAT(Reported(), ElementsAre("segment 0"));
  block(0x13fff);
  EXPECT_THAT(Reported(), IsEmpty()) << "it is known already";
  block(0x14000);
  EXPECT_THAT(Reported(), ElementsAre("unbacked 3"));
  Free(0x10000);
  block(0x11000);
  EXPECT_THAT(Reported(), ElementsAre("unbacked 4"));
  FreeDone(0x10000, kRefused);
  block(0x11000);
  EXPECT_THAT(Reported(), ElementsAre("segment 0"));
  Alloc(0x10000, 0x1000);  // the free of the first was lost
  block(0x11000);
  EXPECT_THAT(Reported(), ElementsAre("unbacked 7"));
  block(0x10800);
  EXPECT_THAT(Reported(), ElementsAre("segment 6"));
  ResetDevice(0);
  block(0x10800);
  EXPECT_THAT(Reported(), ElementsAre("unbacked 9"));
}

TEST_F(HeldMemoryTest, AllMappedInAReservationWithBlocksIsASegment) {
  held_.Reserve(Of(RESERVE, VMM, 0x10000, 0x10000));
  Create(7, 4096);
  Create(8, 4096);
  Create(9, 4096);
  Map(0x10000, 4096, 7);
  Map(0x11000, 4096, 8);
  Reported();
  Block(0x10000, 512);
  EXPECT_THAT(Reported(), ElementsAre("born 3", "segment 0", "segment 0", "segment 1"));
  Map(0x12000, 4096, 9);
  EXPECT_THAT(Reported(), ElementsAre("segment 2"));
}

TEST_F(HeldMemoryTest, RegionDoesNotMakeASegment) {
  Alloc(0x1000, 4096);
  Event region = Of(ALLOC, REGION, 0x1000, 512);
  region.present |= format::kHasDevice;
  held_.Alloc(region, kBlockHeap, *this);
  region.address = 0x9000;
  held_.Alloc(region, kBlockHeap, *this);
  EXPECT_THAT(Reported(), ElementsAre("born 0", "born 1", "born 2", "unbacked 2"));
}

TEST_F(HeldMemoryTest, ResetEndsBlocksThenMappingsThenDriverMemory) {
  Alloc(0x1000, 4096);
  Create(7, 4096);
  Map(0x10000, 4096, 7);
  Block(0x1000, 512);
  Reported();
  ResetDevice(1);
  EXPECT_THAT(Reported(), IsEmpty());
  ResetDevice(0);
  EXPECT_THAT(Reported(), ElementsAre("ended 2", "unmapped 1", "ended 0", "ended 1"));
}

TEST_F(HeldMemoryTest, FreeOfUnknownMemoryIsReported) {
  Free(0x1000);
  Free(0);
  EXPECT_THAT(Reported(), ElementsAre("free of unknown"));
}

TEST_F(HeldMemoryTest, RenumberedCopyHoldsTheSameMemoryUnderOtherIds) {
  Alloc(0x1000, 512);
  Free(0x1000);
  Create(7, 4096);
  Map(0x10000, 4096, 7);
  Reported();
  held_ = held_.Renumbered({kNoHeld, 5}, [](uint32_t tag) { return tag; });
  FreeDone(0x1000, kRefused);  // final in the copy
  ReleaseHandle(7);
  Unmap(0x10000, 4096);
  EXPECT_THAT(Reported(), ElementsAre("ended 5", "unmapped 5"));
}

}  // namespace
}  // namespace gmt::analysis
