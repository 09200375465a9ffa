#include "collector/events/live_model.h"

#include <gtest/gtest.h>

namespace gmt::collector {
namespace {

using session::Kind;
using session::Memory;
using session::Record;
using session::Space;

Record Make(Kind kind, uint64_t value, uint8_t context = 1) {
  Record record;
  record.kind = kind;
  record.space = Space::kDevice;
  record.memory = Memory::kDevice;
  record.context = context;
  record.value = value;
  return record;
}

// Gives the entry that `applied` refers to a slot, as a writer does.
void SetSlot(const LiveModel::Applied& applied, format::AcquisitionSlot slot) {
  ASSERT_NE(applied.slot, nullptr);
  *applied.slot = slot;
}

TEST(LiveModelTest, FreeEndsTheEntryAndHasItsSlot) {
  LiveModel live;
  SetSlot(live.Apply(Make(Kind::kAlloc, 0x10), 1), 7);
  const LiveModel::Applied freed = live.Apply(Make(Kind::kFree, 0x10), 2);
  ASSERT_NE(freed.ended, nullptr);
  ASSERT_NE(freed.slot, nullptr);
  EXPECT_EQ(*freed.slot, 7u);
  EXPECT_TRUE(live.entries().empty());
  EXPECT_EQ(live.Apply(Make(Kind::kFree, 0x10), 3).slot, nullptr);
}

TEST(LiveModelTest, AllocationAtAPlaceInUseHasTheSlotOfTheFormerOne) {
  LiveModel live;
  SetSlot(live.Apply(Make(Kind::kAlloc, 0x10), 1), 7);
  const LiveModel::Applied again = live.Apply(Make(Kind::kAlloc, 0x10), 2);
  ASSERT_NE(again.slot, nullptr);
  EXPECT_EQ(*again.slot, 7u);
}

TEST(LiveModelTest, ResultOfAFreeHasTheSlotOfWhatWasFreed) {
  for (const uint16_t result : {0, 700}) {
    LiveModel live;
    SetSlot(live.Apply(Make(Kind::kAlloc, 0x10), 1), 7);
    live.Apply(Make(Kind::kFree, 0x10), 2);
    Record done = Make(Kind::kFreeDone, 0x10);
    done.result = result;
    const LiveModel::Applied finished = live.Apply(done, 3);
    ASSERT_NE(finished.slot, nullptr);
    EXPECT_EQ(*finished.slot, 7u);
    EXPECT_NE(finished.ended, nullptr);
    EXPECT_EQ(live.entries().size(), result == 0 ? 0u : 1u);
  }
}

TEST(LiveModelTest, FreeWithoutAResultIsForgottenAtTheNextOneOfItsPlace) {
  LiveModel live;
  SetSlot(live.Apply(Make(Kind::kAlloc, 0x10), 1), 7);
  EXPECT_TRUE(live.Apply(Make(Kind::kFree, 0x10), 2).forgotten.empty());
  SetSlot(live.Apply(Make(Kind::kAlloc, 0x10), 3), 8);
  const LiveModel::Applied again = live.Apply(Make(Kind::kFree, 0x10), 4);
  EXPECT_EQ(*again.slot, 8u);
  ASSERT_EQ(again.forgotten.size(), 1u);
  EXPECT_EQ(again.forgotten[0].first, (Place{Space::kDevice, 0x10}));
  EXPECT_EQ(again.forgotten[0].second.slot, 7u);
  EXPECT_EQ(*live.Apply(Make(Kind::kFreeDone, 0x10), 5).slot, 8u);
}

TEST(LiveModelTest, FreesWithoutAResultAreForgottenIfThereAreTooMany) {
  LiveModel live;
  size_t frees = 0, forgotten = 0;
  for (uint64_t n = 1; forgotten == 0 && n < 1 << 20; ++n) {
    live.Apply(Make(Kind::kAlloc, n), 2 * n);
    forgotten = live.Apply(Make(Kind::kFree, n), 2 * n + 1).forgotten.size();
    if (forgotten == 0) ++frees;
  }
  EXPECT_EQ(forgotten, frees);
}

TEST(LiveModelTest, ContextResetEndsTheEntriesOfTheContext) {
  LiveModel live;
  SetSlot(live.Apply(Make(Kind::kAlloc, 0x10), 1), 7);
  live.Apply(Make(Kind::kAlloc, 0x20, /*context=*/2), 2);
  Record reset = Make(Kind::kContextReset, 0);
  reset.space = Space::kNone;
  const LiveModel::Applied applied = live.Apply(reset, 3);
  ASSERT_EQ(applied.forgotten.size(), 1u);
  EXPECT_EQ(applied.forgotten[0].first, (Place{Space::kDevice, 0x10}));
  EXPECT_EQ(applied.forgotten[0].second.slot, 7u);
  EXPECT_EQ(live.entries().size(), 1u);
}

TEST(LiveModelTest, EventOlderThanTheEntryDoesNotReferToIt) {
  LiveModel live;
  live.Apply(Make(Kind::kAlloc, 0x10), 5);
  EXPECT_EQ(live.Apply(Make(Kind::kAlloc, 0x10), 4).slot, nullptr);
  EXPECT_EQ(live.Apply(Make(Kind::kFree, 0x10), 4).slot, nullptr);
  EXPECT_EQ(live.entries().size(), 1u);
}

}  // namespace
}  // namespace gmt::collector
