// Tests that a reader can begin in the middle of what a collector writes.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

#include "collector/collector.h"
#include "collector/events/segments.h"
#include "collector/events/tally.h"
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

TEST_F(CollectorTest, CheckpointsKnowWhichMemoryHasHeldBlocks) {
  LiveModel live;
  Tally tally;
  Segments segments(&tally);
  live.set_observer(&segments);
  session::LiveValue value;
  value.size = 0x1000;
  for (const uint64_t address : {0x1000u, 0x2000u, 0x3000u})
    live.Insert({session::Space::kDevice, address}, value);
  value.size = 0x100;
  live.Insert({session::Space::kBlock, 0x1000}, value);
  live.Insert({session::Space::kBlock, 0x3f00}, value);
  live.Insert({session::Space::kBlock, 0x9000}, value);
  live.Erase({session::Space::kBlock, 0x1000});
  EXPECT_TRUE(segments.Contains(0x1000));
  EXPECT_FALSE(segments.Contains(0x2000));
  EXPECT_TRUE(segments.Contains(0x3000));
  live.Erase({session::Space::kDevice, 0x1000});
  live.Insert({session::Space::kDevice, 0x1000}, value);
  EXPECT_FALSE(segments.Contains(0x1000));
}

}  // namespace
}  // namespace gmt::collector
