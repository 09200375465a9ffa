#include "collector/events/tally.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "tests/seeds/seeds.h"

namespace gmt::collector {
namespace {

using session::Kind;
using session::Memory;
using session::Record;
using session::Space;

class TallyTest : public ::testing::Test {
 protected:
  TallyTest() { live_.set_observer(&tally_); }

  Record Make(Kind kind, uint64_t value, uint64_t size = 0, uint32_t stack = 0) {
    Record record;
    record.kind = kind;
    record.space = Space::kDevice;
    record.memory = Memory::kDevice;
    record.device = 0;
    record.value = value;
    record.size = size;
    record.stack = stack;
    record.time_ns = now_ += 10;
    return record;
  }
  void Apply(const Record& record) { live_.Apply(record, ++ticket_); }
  void Alloc(uint64_t address, uint64_t size, uint32_t stack) {
    Apply(Make(Kind::kAlloc, address, size, stack));
  }
  void Free(uint64_t address) { Apply(Make(Kind::kFree, address)); }
  Record Physical(Kind kind, uint64_t handle, uint64_t size = 0) {
    Record record = Make(kind, handle, size, 1);
    record.space = Space::kPhysical;
    record.memory = Memory::kVmm;
    return record;
  }
  Record Mapping(Kind kind, uint64_t address, uint64_t handle) {
    Record record = Make(kind, address, 64);
    record.space = Space::kMapping;
    record.memory = Memory::kVmm;
    record.stream = handle;
    return record;
  }

  uint64_t now_ = 0, ticket_ = 0;
  Tally tally_;
  LiveModel live_;
};

TEST_F(TallyTest, CountsLiveMemoryAndAllocations) {
  Alloc(0x10, 5, 1);
  Alloc(0x20, 3, 2);
  Free(0x10);
  ASSERT_EQ(tally_.heaps().size(), 1u);
  const HeapCounts& heap = tally_.heaps()[0];
  EXPECT_STREQ(heap.heap, "driver");
  EXPECT_EQ(heap.device, 0);
  EXPECT_EQ(heap.live_bytes, 3u);
  EXPECT_EQ(heap.allocations, 2u);
  EXPECT_EQ(heap.allocated_bytes, 8u);
  EXPECT_EQ(heap.frees, 1u);
  EXPECT_EQ(heap.peak_bytes, 8u);
  EXPECT_EQ(heap.peak_ns, 20u);
}

TEST_F(TallyTest, KeepsTheCompositionOfThePeak) {
  Alloc(0x10, 5, 1);
  Alloc(0x20, 3, 2);
  Free(0x10);
  Alloc(0x30, 4, 3);  // 7: less than 8
  EXPECT_EQ(tally_.site(0).bytes_at_peak, 5u);
  EXPECT_EQ(tally_.site(1).bytes_at_peak, 3u);
  EXPECT_EQ(tally_.site(2).bytes_at_peak, 0u);
  Alloc(0x40, 9, 2);  // 16
  EXPECT_EQ(tally_.site(0).bytes_at_peak, 0u);
  EXPECT_EQ(tally_.site(1).bytes_at_peak, 12u);
  EXPECT_EQ(tally_.site(2).bytes_at_peak, 4u);
}

TEST_F(TallyTest, RefusedFreeDoesNotCount) {
  Alloc(0x10, 5, 1);
  Free(0x10);
  Record done = Make(Kind::kFreeDone, 0x10);
  done.result = 700;
  Apply(done);
  EXPECT_EQ(tally_.heaps()[0].live_bytes, 5u);
  EXPECT_EQ(tally_.heaps()[0].allocations, 1u);
  EXPECT_EQ(tally_.heaps()[0].frees, 0u);
}

TEST_F(TallyTest, ReusedAddressEndsTheFormerAllocation) {
  Alloc(0x10, 5, 1);
  Alloc(0x10, 7, 2);
  EXPECT_EQ(tally_.heaps()[0].live_bytes, 7u);
  EXPECT_EQ(tally_.heaps()[0].live_count, 1u);
}

TEST_F(TallyTest, ContextResetEndsItsMemory) {
  Record record = Make(Kind::kAlloc, 0x10, 5, 1);
  record.context = 3;
  Apply(record);
  Record reset = Make(Kind::kContextReset, 0);
  reset.space = Space::kNone;
  reset.context = 3;
  Apply(reset);
  EXPECT_EQ(tally_.heaps()[0].live_bytes, 0u);
}

TEST_F(TallyTest, PhysicalMemoryIsHeldUntilReleasedAndUnmapped) {
  Apply(Physical(Kind::kCreate, 0x7, 64));
  Apply(Mapping(Kind::kMap, 0x1000, 0x7));
  Apply(Physical(Kind::kRelease, 0x7));
  EXPECT_EQ(tally_.heaps()[0].live_bytes, 64u);
  Apply(Mapping(Kind::kUnmap, 0x1000, 0));
  EXPECT_EQ(tally_.heaps()[0].live_bytes, 0u);
  Apply(Physical(Kind::kCreate, 0x8, 32));
  Apply(Mapping(Kind::kMap, 0x1000, 0x8));
  Apply(Mapping(Kind::kUnmap, 0x1000, 0));
  EXPECT_EQ(tally_.heaps()[0].live_bytes, 32u);
  Apply(Physical(Kind::kRelease, 0x8));
  EXPECT_EQ(tally_.heaps()[0].live_bytes, 0u);
  EXPECT_EQ(tally_.heaps()[0].frees, 2u);
}

TEST_F(TallyTest, ReservationsAndForeignMemoryDoNotCount) {
  Record reserve = Make(Kind::kReserve, 0x10, 1 << 20);
  reserve.space = Space::kReservation;
  reserve.memory = Memory::kVmm;
  Apply(reserve);
  Record import = Make(Kind::kImport, 0x20, 4096);
  import.space = Space::kIpc;
  import.memory = Memory::kIpc;
  Apply(import);
  EXPECT_TRUE(tally_.heaps().empty());
}

TEST_F(TallyTest, HeapsAreCountedPerDevice) {
  Record block = Make(Kind::kAlloc, 0x10, 512, 1);
  block.space = Space::kBlock;
  block.memory = Memory::kBlock;
  block.device = 1;
  block.total_allocated = 512;
  block.total_reserved = 2 << 20;
  Apply(block);
  tally_.Note(block);
  Record refused = Make(Kind::kAllocFailed, 0, 1 << 30);
  tally_.Note(refused);
  Alloc(0x10, 2 << 20, 1);
  ASSERT_EQ(tally_.heaps().size(), 2u);
  EXPECT_STREQ(tally_.heaps()[0].heap, "pytorch");
  EXPECT_EQ(tally_.heaps()[0].device, 1);
  EXPECT_EQ(tally_.heaps()[0].peak_reported_reserved, 2u << 20);
  EXPECT_EQ(tally_.heaps()[1].failed, 1u);
}

TEST(TallyBoundTest, SitesBeyondTheLimitAreMergedPerHeap) {
  Tally tally(2);
  const auto live = [](uint32_t stack, uint8_t device) {
    LiveModelEntry value;
    value.kind = Kind::kAlloc;
    value.memory = Memory::kDevice;
    value.device = device;
    value.stack = stack;
    value.size = 8;
    return value;
  };
  LiveModelEntry merged;
  for (uint32_t stack = 1; stack <= 5; ++stack) {
    merged = live(stack, 0);
    tally.OnBorn({Space::kDevice, stack}, &merged);
  }
  LiveModelEntry other = live(1, 1);
  tally.OnBorn({Space::kDevice, 9}, &other);
  tally.OnEnded({Space::kDevice, 5}, merged);
  ASSERT_EQ(tally.site_count(), 4u);
  EXPECT_EQ(tally.site(2).stack, kOtherStack);
  EXPECT_EQ(tally.site(2).live_bytes, 16u);
  EXPECT_EQ(tally.site(2).allocations, 3u);
  EXPECT_EQ(tally.site(3).heap, 1u);
}

// The simple implementation: keeps all live blocks and copies them at each peak.
class Oracle {
 public:
  using Site = std::tuple<uint8_t, uint32_t>;  // device, stack
  void Alloc(uint8_t device, uint64_t address, uint64_t size, uint32_t stack) {
    Free(device, address);
    held_[{device, address}] = {stack, size};
    const uint64_t bytes = Bytes(device);
    if (bytes <= peak_[device]) return;
    peak_[device] = bytes;
    std::erase_if(at_peak_, [&](const auto& entry) { return std::get<0>(entry.first) == device; });
    for (const auto& [place, block] : held_) {
      if (place.first == device) at_peak_[{device, block.first}] += block.second;
    }
  }
  void Free(uint8_t device, uint64_t address) { held_.erase({device, address}); }
  uint64_t Bytes(uint8_t device) const {
    uint64_t sum = 0;
    for (const auto& [place, block] : held_) sum += place.first == device ? block.second : 0;
    return sum;
  }
  uint64_t peak(uint8_t device) { return peak_[device]; }
  uint64_t AtPeak(Site site) { return at_peak_[site]; }
  uint64_t Live(Site site) const {
    uint64_t sum = 0;
    for (const auto& [place, block] : held_)
      sum += Site{place.first, block.first} == site ? block.second : 0;
    return sum;
  }

 private:
  std::map<std::pair<uint8_t, uint64_t>, std::pair<uint32_t, uint64_t>> held_;
  std::map<uint8_t, uint64_t> peak_;
  std::map<Site, uint64_t> at_peak_;
};

TEST_F(TallyTest, AgreesWithTheSimpleImplementationOnRandomCalls) {
  ForEachSeed({1}, [&](uint32_t seed) {
    Tally tally;
    LiveModel live;
    live.set_observer(&tally);
    uint64_t ticket = 0;
    std::mt19937_64 random(seed);
    Oracle oracle;
    for (int n = 0; n < 4000; ++n) {
      const auto device = static_cast<uint8_t>(random() % 2);
      const uint64_t address = device * 1000u + random() % 40;
      const auto stack = static_cast<uint32_t>(random() % 6);
      if (random() % 2 == 0) {
        Record record = Make(Kind::kAlloc, address, 1 + random() % 100, stack);
        record.device = device;
        oracle.Alloc(device, address, record.size, stack);
        live.Apply(record, ++ticket);
      } else {
        oracle.Free(device, address);
        live.Apply(Make(Kind::kFree, address), ++ticket);
      }
      if (n % 50 != 0) continue;
      for (const SiteCounts& site : tally.Sites()) {
        const HeapCounts& heap = tally.heaps()[site.heap];
        ASSERT_EQ(site.live_bytes, oracle.Live({heap.device, site.stack}));
        ASSERT_EQ(site.bytes_at_peak, oracle.AtPeak({heap.device, site.stack}));
      }
      for (const HeapCounts& heap : tally.heaps()) {
        ASSERT_EQ(heap.peak_bytes, oracle.peak(heap.device));
        ASSERT_EQ(heap.allocations - heap.frees, heap.live_count);
      }
    }
  });
}

}  // namespace
}  // namespace gmt::collector
