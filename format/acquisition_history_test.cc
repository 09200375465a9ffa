#include "format/acquisition_history.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

Event Block(Kind kind, uint64_t address, uint64_t size = 0) {
  Event event;
  event.kind = kind;
  event.memory = BLOCK;
  event.heap = 1;
  event.address = address;
  event.size = size;
  event.present = kHasAddress;
  if (size > 0) event.present |= kHasSize;
  return event;
}

Event OfDriver(Kind kind, uint64_t address, uint32_t result = 0) {
  Event event = Block(kind, address, 512);
  event.memory = DEVICE;
  event.result = result;
  return event;
}

// Reports a free to the history, as encoder and decoder do. Returns how far back its allocation
// was.
uint64_t End(AcquisitionHistory& history, const Event& event) {
  const Acquired* acquired = history.AcquisitionOf(event);
  const uint64_t distance = history.DistanceOf(acquired);
  history.Ended(event, acquired);
  return distance;
}

TEST(AcquisitionHistoryTest, FreeIsFoundByPlaceAndByRow) {
  AcquisitionHistory history;
  history.Add(Block(ALLOC, 0x1000, 512));
  history.Add(Block(ALLOC, 0x2000, 1024));
  const Acquired* found = history.AcquisitionOf(Block(FREE, 0x1000));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->row, 0u);
  EXPECT_EQ(history.Find(2), found);
  EXPECT_EQ(found->size, 512u);
}

TEST(AcquisitionHistoryTest, SecondFreeOfABlockIsNotFound) {
  AcquisitionHistory history;
  history.Add(Block(ALLOC, 0x1000, 512));
  EXPECT_EQ(End(history, Block(FREE, 0x1000)), 1u);
  EXPECT_EQ(End(history, Block(FREE, 0x1000)), 0u);
  EXPECT_EQ(history.Find(1), nullptr);
}

TEST(AcquisitionHistoryTest, RowIsKeptUntilTheResultOfTheDriversFreeIsKnown) {
  AcquisitionHistory history;
  history.Add(OfDriver(ALLOC, 0x1000));
  EXPECT_EQ(End(history, OfDriver(FREE, 0x1000)), 1u);
  EXPECT_EQ(End(history, OfDriver(FREE_DONE, 0x1000, /*result=*/2)), 1u);
  EXPECT_EQ(End(history, OfDriver(FREE, 0x1000)), 1u);
  EXPECT_EQ(End(history, OfDriver(FREE_DONE, 0x1000)), 1u);
  EXPECT_EQ(End(history, OfDriver(FREE_DONE, 0x1000)), 0u);
}

TEST(AcquisitionHistoryTest, ReusedPlaceEndsTheOldRow) {
  AcquisitionHistory history;
  history.Add(Block(ALLOC, 0x1000, 512));
  history.Add(Block(ALLOC, 0x1000, 1024));
  EXPECT_EQ(history.AcquisitionOf(Block(FREE, 0x1000))->row, 1u);
  EXPECT_EQ(history.Find(2), nullptr);
}

TEST(AcquisitionHistoryTest, LostRowsAreNotFound) {
  AcquisitionHistory history;
  history.Add(Block(ALLOC, 0x1000, 512));
  history.ContinueAt(1000);
  EXPECT_EQ(history.Find(5), nullptr);
  EXPECT_EQ(history.DistanceOf(history.AcquisitionOf(Block(FREE, 0x1000))), 1000u);
  ASSERT_NE(history.Find(1000), nullptr);
}

TEST(AcquisitionHistoryTest, RoleFindsABlockAndDoesNotEndIt) {
  AcquisitionHistory history;
  history.Add(Block(ALLOC, 0x1000, 512));
  Event role = Block(ROLE, 0x1000);
  EXPECT_EQ(End(history, role), 1u);
  EXPECT_EQ(End(history, role), 1u);
  CompleteRole(*history.Find(1), &role);
  EXPECT_EQ(role.size, 512u);
  EXPECT_TRUE(role.has(kHasSize));
  EXPECT_EQ(End(history, Block(FREE, 0x1000)), 1u);
  EXPECT_EQ(End(history, role), 0u);
}

TEST(AcquisitionHistoryTest, ReaderKeepsAnAllocationUntilItsFreeAndAMappingUntilTheNextOne) {
  AcquisitionHistory history(AcquisitionHistory::Finds::kByRowOrSlot);
  for (const Kind kind : {ALLOC, MAP}) {
    history.Add(Block(kind, 0x1000, 512));
    history.Add(Block(kind, 0x1000, 1024));
    ASSERT_NE(history.Find(1), nullptr);
    EXPECT_EQ(history.Find(2) == nullptr, kind == MAP);
  }
  history.Ended(Block(FREE, 0x1000), history.Find(4));
  EXPECT_EQ(history.Find(4), nullptr);
  ASSERT_NE(history.Find(3), nullptr);
  EXPECT_EQ(history.Find(3)->size, 1024u);
}

TEST(AcquisitionHistoryTest, SlotIsUsedOnlyIfItStillHoldsThePlace) {
  AcquisitionHistory history(AcquisitionHistory::Finds::kByRowOrSlot);
  const AcquisitionSlot first = history.Add(Block(ALLOC, 0x1000, 512));
  EXPECT_EQ(history.AcquisitionOf(Block(FREE, 0x1000)), nullptr);
  EXPECT_EQ(history.AcquisitionOf(Block(FREE, 0x2000), first), nullptr);
  EXPECT_EQ(history.AcquisitionOf(Block(FREE, 0x1000), first + 1), nullptr);
  ASSERT_NE(history.AcquisitionOf(Block(FREE, 0x1000), first), nullptr);
  EXPECT_EQ(history.AcquisitionOf(Block(ROLE, 0x1000), first)->size, 512u);
  history.Ended(Block(FREE, 0x1000), history.AcquisitionOf(Block(FREE, 0x1000), first));
  EXPECT_EQ(history.AcquisitionOf(Block(FREE, 0x1000), first), nullptr);
  EXPECT_EQ(history.Add(Block(ALLOC, 0x2000, 512)), first);
  EXPECT_EQ(history.AcquisitionOf(Block(FREE, 0x1000), first), nullptr);
}

TEST(AcquisitionHistoryTest, AllocationReplacesTheOneInTheSlotOfItsPlace) {
  AcquisitionHistory history(AcquisitionHistory::Finds::kByRowOrSlot);
  const AcquisitionSlot slot = history.Add(Block(ALLOC, 0x1000, 512));
  EXPECT_EQ(history.Add(Block(ALLOC, 0x1000, 1024), slot), slot);
  EXPECT_EQ(history.Find(2), nullptr);
  EXPECT_NE(history.Add(Block(ALLOC, 0x2000, 512), slot), slot);
  EXPECT_EQ(history.Kept().size(), 2u);
}

TEST(AcquisitionHistoryTest, ForgottenAllocationIsNotKept) {
  AcquisitionHistory history(AcquisitionHistory::Finds::kByRowOrSlot);
  const AcquisitionSlot slot = history.Add(Block(ALLOC, 0x1000, 512));
  history.Forget(Block(FREE, 0x1000), slot);
  history.Forget(Block(FREE, 0x1000), slot);
  history.Forget(Block(FREE, 0x1000), kNoAcquisitionSlot);
  EXPECT_TRUE(history.Kept().empty());
  EXPECT_EQ(history.Find(1), nullptr);
  EXPECT_EQ(history.AcquisitionOf(Block(FREE, 0x1000), slot), nullptr);
}

TEST(AcquisitionHistoryTest, AllocationThatHasTakenAnOldSlotIsNotForgotten) {
  AcquisitionHistory history(AcquisitionHistory::Finds::kByRowOrSlot);
  const AcquisitionSlot slot = history.Add(Block(ALLOC, 0x1000, 512));
  history.Forget(Block(FREE, 0x1000), slot);
  ASSERT_EQ(history.Add(Block(ALLOC, 0x2000, 512)), slot);
  history.Forget(Block(FREE, 0x1000), slot);
  EXPECT_NE(history.AcquisitionOf(Block(FREE, 0x2000), slot), nullptr);
  EXPECT_EQ(history.Kept().size(), 1u);
}

// Compares with a map of all rows, far beyond the window in which rows are found without a table.
TEST(AcquisitionHistoryTest, AgreesWithAMapOfAllHeldMemory) {
  ForEachSeed(SeedsUpTo(3), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    AcquisitionHistory history, reader(AcquisitionHistory::Finds::kByRowOrSlot);
    AcquisitionHistory with_slots(AcquisitionHistory::Finds::kByRowOrSlot);
    std::map<uint64_t, AcquisitionSlot> slots;               // by address, the last one
    std::map<uint64_t, std::pair<uint64_t, uint64_t>> held;  // address: row, size
    uint64_t rows = 0;
    for (int n = 0; n < 400'000; ++n) {
      // A few addresses are reused soon, most after a long time.
      const uint64_t address = 512 * (random() % 4 == 0 ? random() % 100'000 : random() % 3000);
      const auto at = held.find(address);
      if (at == held.end()) {
        const uint64_t size = 1 + random() % 9999;
        history.Add(Block(ALLOC, address, size));
        reader.Add(Block(ALLOC, address, size));
        AcquisitionSlot& slot = slots.try_emplace(address, kNoAcquisitionSlot).first->second;
        slot = with_slots.Add(Block(ALLOC, address, size), slot);
        held[address] = {rows++, size};
        continue;
      }
      const Acquired* found = history.AcquisitionOf(Block(FREE, address));
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(found->row, at->second.first);
      ASSERT_EQ(history.Find(rows - found->row), found);
      ASSERT_EQ(found->size, at->second.second);
      const Acquired* by_slot = with_slots.AcquisitionOf(Block(FREE, address), slots[address]);
      ASSERT_NE(by_slot, nullptr);
      ASSERT_EQ(by_slot->row, found->row);
      with_slots.Ended(Block(FREE, address), by_slot);
      const Acquired* read = reader.Find(rows - found->row);
      ASSERT_NE(read, nullptr);
      ASSERT_EQ(read->size, found->size);
      reader.Ended(Block(FREE, address), read);
      ASSERT_EQ(reader.Find(rows - at->second.first), nullptr);
      history.Ended(Block(FREE, address), found);
      ASSERT_EQ(history.AcquisitionOf(Block(FREE, address)), nullptr);
      held.erase(at);
    }
    ASSERT_EQ(with_slots.Kept().size(), held.size());
    ASSERT_EQ(history.Kept().size(), held.size());
  });
}

}  // namespace
}  // namespace gmt::format
