// Tests that a reader can begin in the middle of what a collector writes.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "analysis/examination/replay.h"
#include "analysis/trace/trace_builder.h"
#include "collector/collector.h"
#include "collector/testing/collector_fixture.h"
#include "format/live_columns.h"
#include "format/reading_plan.h"

namespace gmt::collector {
namespace {

// Follows what is held, from a checkpoint on if there is one.
struct HeldAtTheEnd : format::RecordingVisitor {
  absl::Status OnCheckpoint(const gmt::Checkpoint& checkpoint) override {
    begins_with = checkpoint;
    const auto rows = format::DecodeLive(checkpoint.held().live());
    if (!rows.ok()) return rows.status();
    for (const format::Event& row : *rows) held[row.address] = row.size;
    allocations = checkpoint.so_far().heaps(0).allocations();
    return absl::OkStatus();
  }
  absl::Status OnEvents(const format::EventBatch& batch) override {
    for (const format::Event& event : batch.events) {
      ++events;
      if (event.kind == gmt::ALLOC) held[event.address] = event.size, ++allocations;
      if (event.kind == gmt::FREE) held.erase(event.address);
    }
    return absl::OkStatus();
  }

  gmt::Checkpoint begins_with;
  std::map<uint64_t, uint64_t> held;
  uint64_t events = 0, allocations = 0;
};

TEST_F(CollectorTest, TheEndOfALongRecordingIsKnownFromItsLastEvents) {
  session::SessionSizes sizes = FakeTarget::SmallSizes();
  sizes.ring = 1 << 18;
  FakeTarget target(sizes);
  Start(target);
  std::mt19937 random(1);
  std::map<uint64_t, uint64_t> held;
  uint64_t allocations = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 100'000; ++i) {
      const uint64_t address = 0x1000 * (1 + random() % 500);
      if (held.erase(address) > 0) {
        target.Free(address);
      } else {
        target.Alloc(address, held[address] = 256 * (1 + random() % 100));
        ++allocations;
      }
    }
    ReadAll();
  }
  ExitAndRead(target);

  HeldAtTheEnd end;
  auto reader = format::RecordingReader::FromBytes(bytes_, "test.gmt");
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE((*reader)->ReadRange(end, {INT64_MAX, INT64_MAX}).ok());
  EXPECT_TRUE((*reader)->complete());
  EXPECT_GT(end.begins_with.so_far().events(), 500'000u);
  EXPECT_LT(end.events, 1'500'000u);
  EXPECT_TRUE(end.begins_with.held().exact());
  EXPECT_EQ(end.held, held);
  EXPECT_EQ(end.allocations, allocations);
}

// Allocates and frees memory of all kinds in which blocks may lie, at random.
class RandomMemory {
 public:
  RandomMemory(FakeTarget& target, uint32_t seed) : target_(target), random_(seed) {
    Write(Kind::kReserve, Space::kReservation, Memory::kVmm, kReservation, kSlots * kSlot);
  }

  void Step() {
    // Only now and then something else than blocks, as by a caching allocator.
    const uint64_t slot = random_() % kSlots;
    switch (random_() % 1000) {
      case 0:
        return Toggle(device_, kDevice + slot * kSlot, [&](uint64_t address, bool begins) {
          if (begins) {
            target_.Alloc(address, kSlot);
          } else {
            target_.Free(address);
          }
        });
      case 1:
        return Toggle(mapped_, kReservation + slot * kSlot, [&](uint64_t address, bool begins) {
          Map(address, 1 + slot, begins);
        });
      default:
        return AllocOrFreeBlock();
    }
  }

 private:
  using Kind = session::Kind;
  using Space = session::Space;
  using Memory = session::Memory;
  static constexpr uint64_t kDevice = 1 << 20, kReservation = 1 << 30, kSlot = 1 << 12, kSlots = 64;

  template <typename Change>
  void Toggle(std::set<uint64_t>& held, uint64_t address, Change change) {
    const bool begins = held.insert(address).second;
    if (!begins) {
      for (uint64_t block = address; block < address + kSlot; block += kSlot / 4) {
        if (blocks_.erase(block) > 0) target_.Free(block, kBlock);
      }
      held.erase(address);
    }
    change(address, begins);
  }
  void Map(uint64_t address, uint64_t handle, bool begins) {
    if (begins) {
      Write(Kind::kCreate, Space::kPhysical, Memory::kVmm, handle, kSlot);
      Write(Kind::kMap, Space::kMapping, Memory::kVmm, address, kSlot, handle);
    } else {
      Write(Kind::kUnmap, Space::kMapping, Memory::kVmm, address, kSlot, handle);
      Write(Kind::kRelease, Space::kPhysical, Memory::kVmm, handle, 0);
    }
  }
  void AllocOrFreeBlock() {
    const std::set<uint64_t>& slots = random_() % 2 == 0 ? device_ : mapped_;
    if (slots.empty()) return;
    const auto slot = slots.lower_bound(*slots.begin() + random_() % (kSlots * kSlot));
    if (slot == slots.end() || *slot % (8 * kSlot) == 0) return;  // some never hold blocks
    const uint64_t block = *slot + random_() % 4 * (kSlot / 4);
    if (blocks_.insert(block).second) {
      target_.Alloc(block, 1 + random_() % (kSlot / 4), kBlock);
    } else {
      blocks_.erase(block);
      target_.Free(block, kBlock);
    }
  }
  void Write(Kind kind, Space space, Memory memory, uint64_t value, uint64_t size,
             uint64_t handle = 0) {
    session::Record record;
    record.kind = kind;
    record.space = space;
    record.memory = memory;
    record.device = 0;
    record.value = value;
    record.size = size;
    record.stream = handle;
    record.time_ns = target_.now_ns += 1000;
    target_.Write(record);
  }

  static constexpr Layer kBlock = {session::Space::kBlock, session::Memory::kBlock};
  FakeTarget& target_;
  std::mt19937 random_;
  std::set<uint64_t> device_, mapped_, blocks_;
};

TEST_F(CollectorTest, CheckpointsBoundWhatWasAllocatedSinceThePreviousOne) {
  session::SessionSizes sizes = FakeTarget::SmallSizes();
  sizes.ring = 1 << 18;
  FakeTarget target(sizes);
  Start(target);
  RandomMemory memory(target, 7);
  for (int round = 0; round < 16; ++round) {
    for (int i = 0; i < 100'000; ++i) memory.Step();
    ReadAll();
  }
  ExitAndRead(target);

  const auto source = format::BytesInMemory(bytes_);
  const auto sums = format::ReadCheckpointSums(*source);
  ASSERT_TRUE(sums.ok()) << sums.status();
  ASSERT_GE(sums->size(), 3u);
  auto reader = format::RecordingReader::FromBytes(bytes_, "test.gmt");
  ASSERT_TRUE(reader.ok()) << reader.status();
  analysis::TraceBuilder builder((*reader)->definitions());
  ASSERT_TRUE((*reader)->Read(builder).ok());
  const analysis::Trace trace = std::move(builder).Build();

  int64_t from_ns = INT64_MIN;
  for (const auto& checkpoint : *sums) {
    uint64_t at_most = 0;
    for (const gmt::HeapCounts& heap : checkpoint->heaps()) at_most += heap.allocated_at_most();
    const analysis::Replay interval(trace, {from_ns, checkpoint->t_ns()});
    EXPECT_LE(interval.devices().at(0).allocated.peak, at_most);
    EXPECT_GE(interval.devices().at(0).allocated.peak + at_most / 4, at_most);
    from_ns = checkpoint->t_ns();
  }
  const analysis::Replay replay(trace);
  for (const gmt::HeapCounts& heap : sums->back()->heaps()) {
    for (const auto& [key, totals] : replay.heaps()) {
      if (trace.heaps[key.second] != heap.heap()) continue;
      EXPECT_EQ(heap.allocations(), totals.allocations);
      EXPECT_EQ(heap.frees(), totals.frees);
      EXPECT_EQ(heap.peak_bytes(), totals.bytes.peak);
      EXPECT_EQ(heap.peak_t_ns(), trace.TimeOf(totals.bytes.peak_step));
    }
    if (heap.heap() != "driver") continue;
    EXPECT_EQ(heap.peak_segment_bytes(), replay.devices().at(0).segments.peak);
  }
}

}  // namespace
}  // namespace gmt::collector
