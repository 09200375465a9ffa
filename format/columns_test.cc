// Tests the rule of columns, and encoding and decoding of events.

#include "format/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "format/event_columns.h"
#include "format/event_encoder.h"
#include "format/live_columns.h"
#include "format/testing/random_events.h"
#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Column = google::protobuf::RepeatedField<uint64_t>;

Column Trimmed(const std::vector<uint64_t>& values) {
  Column column(values.begin(), values.end());
  TrimColumn(&column);
  return column;
}

TEST(ColumnsTest, ColumnOfZerosIsEmpty) { EXPECT_THAT(Trimmed({0, 0, 0}), IsEmpty()); }
TEST(ColumnsTest, ConstantColumnIsOneValue) { EXPECT_THAT(Trimmed({7, 7, 7}), ElementsAre(7)); }
TEST(ColumnsTest, RepeatedTailIsDropped) {
  EXPECT_THAT(Trimmed({1, 2, 3, 3}), ElementsAre(1, 2, 3));
}
TEST(ColumnsTest, ZerosAfterAValueKeepOneZero) {
  EXPECT_THAT(Trimmed({5, 0, 0}), ElementsAre(5, 0));
}
TEST(ColumnsTest, EmptyColumnStaysEmpty) { EXPECT_THAT(Trimmed({}), IsEmpty()); }
TEST(ColumnsTest, EmptyColumnReadsAsZero) { EXPECT_EQ(ColumnAt(Column(), 12), 0u); }
TEST(ColumnsTest, RowPastTheEndReadsAsTheLast) { EXPECT_EQ(ColumnAt(Trimmed({1, 2}), 99), 2u); }

TEST(ColumnsTest, TrimmedColumnsKeepTheirValues) {
  ForEachSeed(SeedsUpTo(500), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> values(random() % 12);
    for (uint64_t& value : values) value = random() % 3;
    const Column column = Trimmed(values);
    for (size_t row = 0; row < values.size(); ++row) {
      EXPECT_EQ(ColumnAt(column, static_cast<int>(row)), values[row]);
    }
  });
}

TEST(EventColumnsTest, RandomEventsSurviveEncoding) {
  ForEachSeed(SeedsUpTo(200), [](uint32_t seed) {
    RandomEvents random(seed);
    AcquisitionHistory written, read;
    for (int chunk = 0; chunk < 3; ++chunk) {
      EventBatch batch, back;
      for (int n = 0; n < 60; ++n) random.AddTo(&batch, 9);
      const gmt::Events columns = EncodeEvents(batch, 1000, &written);
      ASSERT_TRUE(DecodeEvents(columns, 1000, Returns::kAsRecorded, &read, &back).ok());
      ASSERT_EQ(back.events, batch.events);
      ASSERT_EQ(back.others, batch.others);
    }
  });
}

Event BlockEvent(Kind kind, uint64_t address) {
  Event event;
  event.kind = kind;
  event.present = kHasTime | kHasThread | kHasDevice | kHasAddress;
  event.memory = BLOCK;
  event.heap = 1;
  event.address = address;
  return event;
}

TEST(EventColumnsTest, RolesOfKnownMemoryStoreOnlyItsRow) {
  EventBatch batch;
  for (const uint64_t address : {0x1000u, 0x2000u}) {
    Event& alloc = batch.events.emplace_back(BlockEvent(ALLOC, address));
    alloc.present |= kHasSize | kHasStream | kHasTotals;
    alloc.size = 512;
  }
  for (const uint64_t address : {0x2000u, 0x1000u, 0x1000u}) {
    batch.events.emplace_back(BlockEvent(ROLE, address)).roles = kRoleSaved;
  }
  AcquisitionHistory written, read;
  const gmt::Events columns = EncodeEvents(batch, 0, &written);
  const gmt::Roles& roles = columns.roles();
  EXPECT_THAT(roles.row(), ElementsAre(1, -1, 0));
  EXPECT_THAT(roles.same(), ElementsAre(kSameHeap | kSameMemory | kSameDevice | kSameAddress));
  EXPECT_THAT(roles.roles(), ElementsAre(kRoleSaved));
  EXPECT_EQ(roles.heap_size() + roles.memory_size() + roles.address_size(), 0);
  // Roles have bits of their own.
  EXPECT_THAT(columns.present_change(), ElementsAre(batch.events.front().present, 0));
  EventBatch back;
  ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kCompleted, &read, &back).ok());
  EXPECT_EQ(back.events.at(2).address, 0x2000u);
  EXPECT_EQ(back.events.at(2).size, 512u);
  EXPECT_FALSE(back.events.at(2).has(kHasStream));
  EXPECT_EQ(back.events.at(4).address, 0x1000u);
}

TEST(EventColumnsTest, ClassOfANodeIsStoredOncePerStack) {
  EventBatch batch, back;
  const auto saved_by = [&](uint32_t stack, uint32_t name) {
    Event& role = batch.events.emplace_back(BlockEvent(ROLE, 0x1000));
    role.forward_stack = stack;
    role.name = name;
  };
  for (int step = 0; step < 2; ++step) {
    saved_by(7, 3);
    saved_by(9, 5);
    saved_by(0, 0);
  }
  saved_by(7, 2);
  AcquisitionHistory written, read;
  const gmt::Events columns = EncodeEvents(batch, 0, &written);
  EXPECT_THAT(columns.roles().name(), ElementsAre(3, 5, 0, 0, 0, 0, -1));
  ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kAsRecorded, &read, &back).ok());
  EXPECT_EQ(back.events, batch.events);
}

TEST(EventColumnsTest, RoleOfUnknownMemoryIsStoredInFull) {
  EventBatch batch, back;
  batch.events = {BlockEvent(ROLE, 0x1000), BlockEvent(ALLOC, 0x2000), BlockEvent(ROLE, 0x3000),
                  BlockEvent(ROLE, 0x2000)};
  AcquisitionHistory written, read;
  const gmt::Events columns = EncodeEvents(batch, 0, &written);
  ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kAsRecorded, &read, &back).ok());
  EXPECT_EQ(back.events, batch.events);
}

// Writes the columns as version 1 did.
gmt::Events Version1(const EventBatch& batch, int64_t base_t_ns, AcquisitionHistory* history) {
  gmt::Events columns = EncodeEvents(batch, base_t_ns, history);
  columns.clear_t_width();
  columns.clear_t_bits();
  columns.clear_begin_t_ns();
  columns.clear_present_change();
  columns.mutable_acquisitions()->clear_address();
  columns.mutable_acquisitions()->clear_address_from();
  int64_t t_ns = base_t_ns;
  uint64_t present = 0, address = 0;
  for (const Event& event : batch.events) {
    columns.add_t_ns(SubtractWrapping(event.t_ns, t_ns));
    t_ns = event.t_ns;
    if (event.kind != ROLE) present = event.present;
    columns.add_present(present);
    if (FamilyOf(event.kind) != Family::kAcquisition) continue;
    columns.mutable_acquisitions()->add_address(static_cast<int64_t>(event.address - address));
    address = event.address;
  }
  return columns;
}

TEST(EventColumnsTest, ColumnsOfVersion1AreRead) {
  ForEachSeed(SeedsUpTo(50), [](uint32_t seed) {
    RandomEvents random(seed);
    AcquisitionHistory written, read;
    EventBatch batch, back;
    for (int n = 0; n < 60; ++n) random.AddTo(&batch, 9);
    const gmt::Events columns = Version1(batch, 1000, &written);
    ASSERT_TRUE(DecodeEvents(columns, 1000, Returns::kAsRecorded, &read, &back).ok());
    ASSERT_EQ(back.events, batch.events);
  });
}

TEST(EventColumnsTest, MissingTimesAndInvalidAddressesAreDamage) {
  EventBatch batch;
  batch.events = {BlockEvent(ALLOC, 0x1000), BlockEvent(ALLOC, 0x1000)};
  AcquisitionHistory history;
  const gmt::Events good = EncodeEvents(batch, 0, &history);
  ASSERT_THAT(good.acquisitions().address_from(), ElementsAre(0, 1));
  for (const int what : {0, 1}) {
    gmt::Events bad = good;
    if (what == 0) bad.set_t_width(good.t_width().substr(1));
    if (what == 1) bad.mutable_acquisitions()->set_address_from(1, 3);
    EventBatch back;
    EXPECT_FALSE(DecodeEvents(bad, 0, Returns::kCompleted, &history, &back).ok());
    EXPECT_THAT(back.events, testing::SizeIs(1));
  }
}

TEST(EventColumnsTest, InvalidRowsOfRolesAreNotFound) {
  for (const int64_t row : {int64_t{-1}, int64_t{7}, INT64_MIN, INT64_MAX}) {
    gmt::Events columns;
    columns.set_count(1);
    columns.add_kind(Events::ROLE);
    columns.mutable_roles()->add_row(row);
    columns.mutable_roles()->add_same(0xFF);
    columns.mutable_roles()->add_present(kHasAddress | kHasSize);
    AcquisitionHistory history;
    EventBatch batch;
    ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kCompleted, &history, &batch).ok());
    EXPECT_FALSE(batch.events.at(0).has(kHasAddress));
  }
}

// A reader of another version that does not know some kinds must not take rows of other families
// for theirs. It reads the same as without the unknown kinds.
TEST(EventColumnsTest, RolesTakeNoRowOfOtherFamilies) {
  ForEachSeed(SeedsUpTo(20), [](uint32_t seed) {
    RandomEvents random(seed);
    EventBatch all, rest, back;
    while (all.events.size() < 200) random.AddTo(&all, 9);
    rest = all;
    const auto is_new = [](const Event& event) { return event.kind == ROLE; };
    std::erase_if(rest.events, is_new);
    AcquisitionHistory written, read;
    gmt::Events columns = EncodeEvents(all, 0, &written);
    for (int row = 0; row < columns.kind_size(); ++row) {
      if (columns.kind(row) == Events::ROLE) {
        columns.set_kind(row, static_cast<Events::Kind>(4711));
      }
    }
    columns.clear_roles();
    ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kAsRecorded, &read, &back).ok());
    std::erase_if(back.events, [](const Event& event) { return event.kind == 4711; });
    EXPECT_EQ(back.events, rest.events);
  });
}

TEST(EventColumnsTest, RandomLiveSetsSurviveEncoding) {
  ForEachSeed(SeedsUpTo(100), [](uint32_t seed) {
    RandomEvents random(seed);
    EventBatch batch;
    for (int n = 0; n < 200; ++n) random.AddTo(&batch, 9);
    std::vector<Event> live;
    for (Event event : batch.events) {
      if (FamilyOf(event.kind) != Family::kAcquisition) continue;
      event.duration_ns = event.total_allocated = event.total_reserved = 0;
      event.result = event.flags = 0;
      live.push_back(event);
    }
    const absl::StatusOr<std::vector<Event>> back = DecodeLive(EncodeLive(live));
    ASSERT_TRUE(back.ok());
    ASSERT_EQ(*back, live);
  });
}

TEST(EventColumnsTest, ClaimOfBillionsOfEventsIsRejected) {
  gmt::Events columns;
  columns.set_count(4'000'000'000);
  AcquisitionHistory history;
  EventBatch batch;
  EXPECT_FALSE(DecodeEvents(columns, 0, Returns::kCompleted, &history, &batch).ok());
  EXPECT_THAT(batch.events, IsEmpty());
}

TEST(EventColumnsTest, EventWithoutItsDetailIsDamage) {
  gmt::Events columns;
  columns.set_count(1);
  columns.add_kind(Events::SAMPLE);
  AcquisitionHistory history;
  EventBatch batch;
  EXPECT_FALSE(DecodeEvents(columns, 0, Returns::kCompleted, &history, &batch).ok());
}

TEST(EventColumnsTest, KindOfALaterVersionIsDeliveredAsANumber) {
  gmt::Events columns;
  columns.set_count(1);
  columns.add_kind(static_cast<Events::Kind>(4711));
  AcquisitionHistory history;
  EventBatch batch;
  ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kCompleted, &history, &batch).ok());
  EXPECT_EQ(FamilyOf(batch.events.at(0).kind), Family::kOther);
}

TEST(EventColumnsTest, DistanceBeyondTheBeginningIsNotFound) {
  gmt::Events columns;
  columns.set_count(1);
  columns.add_kind(Events::FREE);
  columns.mutable_returns()->add_distance(1'000'000);
  columns.mutable_returns()->add_same(0xFF);
  AcquisitionHistory history;
  EventBatch batch;
  ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kCompleted, &history, &batch).ok());
  EXPECT_FALSE(batch.events.at(0).has(kHasAddress));
}

}  // namespace
}  // namespace gmt::format
